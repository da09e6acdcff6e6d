"""What a person can mend: shown as one sentence, exit code 2, nothing touched."""


class UserError(ValueError):
    """The message says what is wrong, where, and what to do."""
