"""An input that is not read: the sentence that says why, and what keeps it from costing the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trainmark.errors import UserError


class SourceError(UserError):
    """The log cannot be read: where it is and why."""


@dataclass(frozen=True)
class Refusal:
    """One input that was not read, and the sentence that says why."""

    name: str
    sentence: str


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn whatever is raised while one input is read into a SourceError that names it.

    The inputs come from anywhere, and neither the decompressors nor the readers promise which exceptions
    they raise of bytes that are no archive or no log; one input must not cost those beside it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        strerror = error.strerror if isinstance(error, OSError) else None
        reason = " ".join((strerror or str(error)).split()) or type(error).__name__
        raise SourceError(f"{name}: could not be read: {reason}.") from error
