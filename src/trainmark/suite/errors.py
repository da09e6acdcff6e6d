"""What a person is told when a suite cannot be used."""

from __future__ import annotations

from trainmark.errors import UserError


class SuiteError(UserError):
    """One sentence: where, what is wrong, what to do."""
