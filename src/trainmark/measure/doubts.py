"""Doubts: the reasons not to take a figure at its word, each with what to do about it.

A sentence says what is wrong, then what to do; it stands under the code of its doubt and a variant. Other
languages have the same names and values in `report`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

IN_TRIALS = "In {trials} of {of} trials: {sentence}"
SENTENCES: dict[str, str] = {
    "few-trials": "{n} trials are too few for a 95 % interval. Run at least {enough}.",
    "few-trials/one": "1 trial is too few for a 95 % interval. Run at least {enough}.",
    "noisy-trials": "Trials vary by {spread} (interquartile range over median). Stop other work on this"
    " machine, or add trials.",
    "failed-trials": "{failed} of {n} trials failed and are not in the figure. Read their logs first.",
    "mixed-environment": "The trials ran in {environments} different environments. Run all of them in one.",
    "superlinear-scaling": "{devices} devices reach {efficiency} of linear scaling, which is more than"
    " linear. Check the one-device baseline, and whether samples are counted per rank.",
    "collapsed-scaling": "{devices} devices reach only {efficiency} of linear scaling. Check the links"
    " between them, and the per-device batch.",
    "data-bound": "Steps waited for data {wait} of the time. Add loader workers, or compare with synthetic"
    " data.",
    "data-bound/waiting": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data; steps"
    " waited for data {wait} of the time: raise `workers`, or take a faster `loader`.",
    "data-bound/contending": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data;"
    " steps hardly waited for it, so the loader takes cores or device time from the training: lower"
    " `workers`, or take a `loader` that works elsewhere.",
    "never-settled": "Step times did not settle within {steps} steps. Run more steps, or look for drift in"
    " clocks, memory or data.",
    "window-too-short": "Only {steady} of {steps} steps are steady; {needed} are needed. Run more steps.",
    "warmup-past-window": "Still warming up after {floor} steps; the first {first} are left out. Set"
    " warmup.steps to {first} or more.",
    "warmup-past-window/program": "Still warming up after {floor} steps; the first {first} are left out. Add"
    " `--warmup {first}`, or a larger number.",
    "throttled": "Clocks were throttled ({reasons}) in {throttled} of {samples} samples. Improve cooling or"
    " power, or lock the clocks.",
    "device-shared": "Other processes (up to {most} at a time) used {devices} during the window. Stop them"
    " and run again.",
    "host-busy": "Other processes used {share} of the host's CPU time in the window. Stop them and run"
    " again.",
    "host-busy/node": "Other processes used {share} of {node}'s CPU time in the window. Stop them and run"
    " again.",
    "host-clock": "The program used a GPU, and its steps were timed by the host, which may only have queued"
    ' them. Give probe.start a clock: "cuda" or "jax", or "synchronous" where every step waits for the GPU.',
    "nan-loss": "The loss was not a finite number in {bad} of {reports} reports: lower the learning rate or"
    " check the loss scale.",
    "loss-not-falling": "The loss went from {before} to {after} over {steps} steps: check that the step"
    " really trains.",
    "wrong-layout": "{precision} ran in NCHW, the slow layout for tensor cores: use layout NHWC.",
    "fell-back": "Part of the step was done another way than it should ({first}): do not take it for the best"
    " that the device can do.",
    "fell-back/several": "Part of the step was done another way than it should ({first}, and {more} more in"
    " the rank's log): do not take it for the best that the device can do.",
    "straggler": "Rank {place} holds the others back: its own part of a step takes {own}, theirs {others},"
    " which costs {cost} of the throughput ({lost} {unit}/s): check its device, host and link.",
    "straggler/node": "Node {place} holds the others back: its own part of a step takes {own}, theirs"
    " {others}, which costs {cost} of the throughput ({lost} {unit}/s): check its device, host and link.",
    "straggler/late": "Rank {place} ends its steps later than the others by {excess} of a step; working and"
    " waiting cannot be separated here, so it costs at most {cost} of the throughput ({lost} {unit}/s):"
    " check its device, host and link.",
    "straggler/late-node": "Node {place} ends its steps later than the others by {excess} of a step; working"
    " and waiting cannot be separated here, so it costs at most {cost} of the throughput ({lost} {unit}/s):"
    " check its device, host and link.",
    "resumed": "The training was killed and resumed {count} times; its clocks never paused and hold {lost} s"
    " in which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/once": "The training was killed and resumed once; its clocks never paused and hold {lost} s in"
    " which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/damaged": "The training was killed and resumed (times: {count}), past damaged checkpoints"
    " ({skipped}); its clocks never paused and hold {lost} s in which nothing that counts was trained: run it"
    " again in one piece where the time matters.",
    "recipe-changed": "The recipe {recipe} was changed ({departures}): compare accuracy and time to train"
    " with nothing that followed it.",
    "target-not-reached": "{missed} of {decided} trials did not reach {target} and count as longer than any"
    " that did: train more epochs, or check the recipe.",
    "target-not-reached/best": "{missed} of {decided} trials did not reach {target} (best {metric} {best})"
    " and count as longer than any that did: train more epochs, or check the recipe.",
    "accuracy-spread": "The best {metric} of {seeds} seeds lies between {low} and {high}: train more seeds,"
    " and do not rank by one of them.",
    "training-uncounted": "{count} more of the program's processes or threads trained than the one that the"
    " figure is of. Train in one of them, or start them as ranks, as torchrun does.",
    "unequal-turns": "Optimizers stepped {turns} times, in no order that tells one round from the next: it is"
    " not certain what one step is. Call the probe after each round, or give --pattern a line of it.",
    "evaluation-in-steps": "Most steps evaluate: for {share} of the time a model was in evaluation mode with"
    " no backward pass, which is counted as training, as of a teacher. Without that the rate is {rate}"
    " {unit}/s.",
    "long-steps": "{count} of {steps} steps, one every {every}, take {share} of the time beyond a usual step"
    " ({usual}), as where a program evaluates or saves; without that the rate is {rate} {unit}/s. Where it is"
    ' no training, call the probe, and run.mark("eval") after it.',
    "long-steps/irregular": "{count} of {steps} steps take {share} of the time beyond a usual step ({usual}):"
    " the program evaluated, saved or was held up; without that the rate is {rate} {unit}/s. Where it is no"
    ' training, call the probe, and run.mark("eval") after it.',
    "lines-in-bursts": "The {lines} lines of steps came in {bursts} bursts, so step times are means over one."
    " Let the program flush each line (`python -u`, `stdbuf -oL`), and stop other work on this machine.",
}


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


def doubt_in_trials(first: Doubt, trials: int, of: int) -> Doubt:
    """Return the doubt of a result that so many of its trials have, in the words of the first of them."""
    message = IN_TRIALS.format(trials=trials, of=of, sentence=first.message)
    return replace(first, message=message, trials=trials, of=of)
