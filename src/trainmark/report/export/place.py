"""Where an export goes: a folder that appears whole, and replaces only what an export left there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainmark.base.errors import UserError

# In every exported folder: by it `--force` knows that nothing of anybody else's is thrown away.
MARKER = ".trainmark-export.json"


class ExportError(UserError):
    """One sentence: what cannot be exported or where it cannot go, and what to do."""


@contextmanager
def new_folder(out: Path, force: bool) -> Iterator[Path]:
    """An empty folder beside `out` to write into; it becomes `out` in one rename if all went well."""
    out = out.resolve()
    _require_free(out, force)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.part-"))
    except OSError as error:
        raise ExportError(
            f"{out} cannot be written: {error.strerror}; choose another folder with --out."
        ) from error
    try:
        # mkdtemp makes a folder for its owner alone; an export is meant to be handed on.
        part.chmod(0o755)
        yield part
        _swap(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _require_free(out: Path, force: bool) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise ExportError(f"{out} is a file; choose a folder with --out.")
    if not any(out.iterdir()):
        return
    if not force:
        raise ExportError(f"{out} is not empty; choose another --out, or replace it with --force.")
    if not (out / MARKER).is_file():
        raise ExportError(
            f"{out} holds something that `trainmark export` did not write; choose another --out."
        )


def _swap(part: Path, out: Path) -> None:
    if not out.exists() or not any(out.iterdir()):
        part.rename(out)
        return
    old = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.old-"))
    out.rename(old)
    part.rename(out)
    shutil.rmtree(old)
