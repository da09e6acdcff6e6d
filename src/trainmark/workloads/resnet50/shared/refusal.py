"""How a workload says no."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had here; the message is one sentence that says why and what to use."""
