"""What a person can mend: shown as one sentence, exit code 2, nothing touched."""

from __future__ import annotations

from collections.abc import Iterable


class UserError(ValueError):
    """The message says what is wrong, where, and what to do."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or the whole list where nothing is near."""
    import difflib

    choices = sorted(known)
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.75)
    # 'batchsize' means batch_per_device, which no edit distance knows.
    close = close or [choice for choice in choices if choice[:5] == word[:5].lower()][:1]
    close = close or difflib.get_close_matches(word, choices, n=1, cutoff=0.4)
    return f"; did you mean '{close[0]}'?" if close else f"; known are {', '.join(choices)}."
