"""What a token set that cannot be read raises."""


class Unfit(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had from these files; one sentence that says why and what to do."""
