"""Doubts: the reasons not to take a figure at its word, each with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from trainmark.measure.sentences import IN_TRIALS, SENTENCES


class DoubtCode(str, Enum):
    """Stable names; scripts match on them."""

    FEW_TRIALS = "few-trials"
    NOISY_TRIALS = "noisy-trials"
    FAILED_TRIALS = "failed-trials"
    WINDOW_TOO_SHORT = "window-too-short"
    WARMUP_PAST_WINDOW = "warmup-past-window"
    NEVER_SETTLED = "never-settled"
    DATA_BOUND = "data-bound"
    THROTTLED = "throttled"
    DEVICE_SHARED = "device-shared"
    HOST_BUSY = "host-busy"
    HOST_CLOCK = "host-clock"
    SCOPE_AMBIGUOUS = "scope-ambiguous"
    SUPERLINEAR = "superlinear-scaling"
    COLLAPSED_SCALING = "collapsed-scaling"
    NAN_LOSS = "nan-loss"
    LOSS_NOT_FALLING = "loss-not-falling"
    COPIED_LOGS = "copied-logs"
    MEAN_OF_RATES = "mean-of-rates"
    RUN_CUT_SHORT = "run-cut-short"
    OUT_OF_ORDER = "out-of-order"
    LINES_MISSING = "lines-missing"
    SETTINGS_CONFLICT = "settings-conflict"
    UNEVEN_SPEED = "uneven-speed"
    WHOLE_RUN_DIFFERS = "whole-run-differs"
    OWN_FIGURE = "own-figure"
    UNKNOWN_SHAPE = "unknown-shape"
    WRONG_LAYOUT = "wrong-layout"
    FELL_BACK = "fell-back"
    STRAGGLER = "straggler"
    MIXED_ENVIRONMENT = "mixed-environment"
    RESUMED = "resumed"
    TARGET_NOT_REACHED = "target-not-reached"
    ACCURACY_SPREAD = "accuracy-spread"
    RECIPE_CHANGED = "recipe-changed"
    TRAINING_UNCOUNTED = "training-uncounted"
    UNEQUAL_TURNS = "unequal-turns"
    LONG_STEPS = "long-steps"
    EVALUATION_IN_STEPS = "evaluation-in-steps"
    LINES_IN_BURSTS = "lines-in-bursts"


class Severity(str, Enum):
    """How much a doubt weighs: do not rely on the figure; check it first; the figure stands."""

    SEVERE = "severe"
    CAUTION = "caution"
    NOTE = "note"


SEVERITY: dict[DoubtCode, Severity] = {
    DoubtCode.FEW_TRIALS: Severity.CAUTION,
    DoubtCode.NOISY_TRIALS: Severity.CAUTION,
    DoubtCode.FAILED_TRIALS: Severity.CAUTION,
    DoubtCode.WINDOW_TOO_SHORT: Severity.CAUTION,
    DoubtCode.WARMUP_PAST_WINDOW: Severity.NOTE,
    DoubtCode.NEVER_SETTLED: Severity.SEVERE,
    DoubtCode.DATA_BOUND: Severity.NOTE,
    DoubtCode.THROTTLED: Severity.CAUTION,
    DoubtCode.DEVICE_SHARED: Severity.SEVERE,
    DoubtCode.HOST_BUSY: Severity.SEVERE,
    DoubtCode.HOST_CLOCK: Severity.CAUTION,
    DoubtCode.SCOPE_AMBIGUOUS: Severity.SEVERE,
    DoubtCode.SUPERLINEAR: Severity.SEVERE,
    DoubtCode.COLLAPSED_SCALING: Severity.CAUTION,
    DoubtCode.NAN_LOSS: Severity.SEVERE,
    DoubtCode.LOSS_NOT_FALLING: Severity.CAUTION,
    DoubtCode.COPIED_LOGS: Severity.SEVERE,
    DoubtCode.MEAN_OF_RATES: Severity.NOTE,
    DoubtCode.RUN_CUT_SHORT: Severity.CAUTION,
    DoubtCode.OUT_OF_ORDER: Severity.SEVERE,
    DoubtCode.LINES_MISSING: Severity.CAUTION,
    DoubtCode.SETTINGS_CONFLICT: Severity.SEVERE,
    DoubtCode.UNEVEN_SPEED: Severity.CAUTION,
    DoubtCode.WHOLE_RUN_DIFFERS: Severity.SEVERE,
    DoubtCode.OWN_FIGURE: Severity.CAUTION,
    DoubtCode.UNKNOWN_SHAPE: Severity.SEVERE,
    DoubtCode.WRONG_LAYOUT: Severity.NOTE,
    DoubtCode.FELL_BACK: Severity.CAUTION,
    DoubtCode.STRAGGLER: Severity.CAUTION,
    DoubtCode.MIXED_ENVIRONMENT: Severity.SEVERE,
    DoubtCode.RESUMED: Severity.CAUTION,
    DoubtCode.TARGET_NOT_REACHED: Severity.CAUTION,
    DoubtCode.ACCURACY_SPREAD: Severity.CAUTION,
    DoubtCode.RECIPE_CHANGED: Severity.NOTE,
    DoubtCode.TRAINING_UNCOUNTED: Severity.SEVERE,
    DoubtCode.UNEQUAL_TURNS: Severity.SEVERE,
    DoubtCode.LONG_STEPS: Severity.CAUTION,
    DoubtCode.EVALUATION_IN_STEPS: Severity.CAUTION,
    DoubtCode.LINES_IN_BURSTS: Severity.CAUTION,
}


@dataclass(frozen=True)
class Doubt:
    """One doubt about one figure; `message` is a whole sentence that ends in what to do.

    `sentence` names the message in SENTENCES and `values` fill it, for other languages; a doubt stored by an
    earlier version has neither. Of a result's doubt that came from its trials, `trials` of `of` have it.
    """

    code: DoubtCode
    message: str
    sentence: str = ""
    values: tuple[tuple[str, str], ...] = ()
    trials: int | None = None
    of: int | None = None

    @property
    def severity(self) -> Severity:
        """That of its code; what fewer than half of the trials have does not move their median far."""
        severity = SEVERITY[self.code]
        few = self.trials is not None and self.of is not None and 2 * self.trials < self.of
        return Severity.CAUTION if few and severity is Severity.SEVERE else severity


def doubt(code: DoubtCode, variant: str = "", /, **values: object) -> Doubt:
    """Return the doubt with the sentence of its code, or of a variant of it, filled with these values."""
    name = f"{code.value}/{variant}" if variant else code.value
    texts = {key: str(value) for key, value in values.items()}
    return Doubt(code, SENTENCES[name].format(**texts), name, tuple(texts.items()))


def of_trials(first: Doubt, trials: int, of: int) -> Doubt:
    """Return the doubt of a result that so many of its trials have, in the words of the first of them."""
    message = IN_TRIALS.format(trials=trials, of=of, sentence=first.message)
    return replace(first, message=message, trials=trials, of=of)
