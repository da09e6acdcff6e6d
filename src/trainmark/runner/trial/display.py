"""What a run shows while it goes on; the command line decides how it looks."""

from __future__ import annotations

from typing import Protocol

from trainmark.runner.trial.follow import Training
from trainmark.store.trial import TrialRecord
from trainmark.suite.plan import PlannedTrial


class Display(Protocol):
    def trial_began(
        self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None
    ) -> None: ...

    def progress(self, steps: int, rate: float | None, training: Training | None = None) -> None: ...

    def trial_ended(self, trial: PlannedTrial, record: TrialRecord) -> None: ...

    def note(self, text: str) -> None: ...


class Silence:
    """Where nobody watches."""

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        return None

    def progress(self, steps: int, rate: float | None, training: Training | None = None) -> None:
        return None

    def trial_ended(self, trial: PlannedTrial, record: TrialRecord) -> None:
        return None

    def note(self, text: str) -> None:
        return None
