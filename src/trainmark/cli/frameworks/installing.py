"""What `trainmark frameworks install` shows: a moving bar on a terminal, a line per package elsewhere."""

from __future__ import annotations

import sys

from trainmark.cli.common.screen import MovingBar, Screen


class Lines(Screen):
    def __init__(self, name: str) -> None:
        self._name = name
        self._last_line = ""

    def progress(self, done: int, total: int, what: str) -> None:
        line = f"{self._name} [{done}/{total}] {what}"
        if line != self._last_line:
            self._last_line = line
            self.note(line)

    def standing(self) -> str:
        return self._last_line or super().standing()


class Moving(MovingBar, Lines):
    """Packages of all packages, and the one at hand."""

    def __init__(self, name: str) -> None:
        from rich.progress import TextColumn, TimeElapsedColumn

        Lines.__init__(self, name)
        at_hand = TextColumn("{task.fields[what]}", markup=False)
        MovingBar.__init__(self, name, TimeElapsedColumn(), at_hand, what="")

    def progress(self, done: int, total: int, what: str) -> None:
        self.show(done, total, what=what)


def install_display(name: str) -> Lines:
    return Moving(name) if sys.stderr.isatty() else Lines(name)
