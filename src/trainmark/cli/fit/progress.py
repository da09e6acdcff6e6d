"""What `trainmark fit` shows meanwhile: a moving line on a terminal, a line per try elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainmark.cli.common.screen import MovingLine, Screen

if TYPE_CHECKING:
    from trainmark.measure.fit import Try
    from trainmark.runner.fit.attempt import FitCase


class Lines(Screen):
    """One line when a try has ended."""

    _now = ""

    def began(self, setting: FitCase, batch: int) -> None:
        cap = f", {setting.cap / 2**30:.2f} GiB" if setting.cap else ""
        self._now = f"{setting}{cap}: {setting.search} {batch}"

    def standing(self) -> str:
        return self._now or super().standing()

    def ended(self, tried: Try) -> None:
        peak = f", {tried.peak / 2**30:.2f} GiB at its peak" if tried.peak is not None else ""
        outcome = "fits" if tried.fits else "is refused" if tried.refused else "does not fit"
        self.note(f"{self._now} {outcome}{peak} ({tried.seconds:.0f} s)")


class Moving(MovingLine, Lines):
    """The batch that is tried now, on a line that moves below those that are done."""

    def began(self, setting: FitCase, batch: int) -> None:
        super().began(setting, batch)
        self.show(self._now)


def progress() -> Lines:
    return Moving() if sys.stderr.isatty() else Lines()
