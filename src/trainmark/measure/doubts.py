"""Doubts: the reasons not to take a figure at its word, each with what to do about it.

A doubt is one record: a stable name with its severity and a clause for verdicts, and the sentences that say
what is wrong, then what to do. Other languages are in the catalogue, by these English texts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from trainmark.view.message import Message, _


class Severity(str, Enum):
    """How much a doubt weighs: do not rely on the figure; check it first; the figure stands."""

    SEVERE = "severe"
    CAUTION = "caution"
    NOTE = "note"

    @property
    def label(self) -> Message:
        return {"severe": _("severe"), "caution": _("caution"), "note": _("note")}[self.value]


SEVERE, CAUTION, NOTE = Severity


class DoubtCode(str, Enum):
    """Stable names, on which scripts match, each with its severity and the clause of a verdict."""

    label: str
    severity: Severity
    clause: str

    def __new__(cls, label: str, severity: Severity, clause: str) -> DoubtCode:
        self = str.__new__(cls, label)
        self._value_, self.label, self.severity, self.clause = str(label), label, severity, clause
        return self

    FEW_TRIALS = _("few-trials"), CAUTION, _("too few trials for a 95 % interval")
    NOISY_TRIALS = _("noisy-trials"), CAUTION, _("trials vary")
    FAILED_TRIALS = _("failed-trials"), CAUTION, _("some trials failed")
    WINDOW_TOO_SHORT = _("window-too-short"), CAUTION, _("the steady window was too short")
    WARMUP_PAST_WINDOW = _("warmup-past-window"), NOTE, _("warm-up lasted longer than allowed for")
    NEVER_SETTLED = _("never-settled"), SEVERE, _("step times never settled")
    DATA_BOUND = _("data-bound"), NOTE, _("steps waited for data")
    THROTTLED = _("throttled"), CAUTION, _("clocks were throttled")
    DEVICE_SHARED = _("device-shared"), SEVERE, _("other processes used the device")
    HOST_BUSY = _("host-busy"), SEVERE, _("the host was busy")
    HOST_CLOCK = _("host-clock"), CAUTION, _("the host timed the steps of a GPU")
    SCOPE_AMBIGUOUS = _("scope-ambiguous"), SEVERE, _("it is not known what the rate counts")
    SUPERLINEAR = _("superlinear-scaling"), SEVERE, _("scaling is more than linear")
    COLLAPSED_SCALING = _("collapsed-scaling"), CAUTION, _("scaling collapsed")
    NAN_LOSS = _("nan-loss"), SEVERE, _("the loss was not a number")
    LOSS_NOT_FALLING = _("loss-not-falling"), CAUTION, _("the loss did not fall")
    COPIED_LOGS = _("copied-logs"), SEVERE, _("logs are copies of one another")
    MEAN_OF_RATES = _("mean-of-rates"), NOTE, _("the program's own figure is a mean of rates")
    RUN_CUT_SHORT = _("run-cut-short"), CAUTION, _("the run did not end well")
    OUT_OF_ORDER = _("out-of-order"), SEVERE, _("the lines of the log are out of order")
    LINES_MISSING = _("lines-missing"), CAUTION, _("the log lacks lines")
    SETTINGS_CONFLICT = _("settings-conflict"), SEVERE, _("settings contradict each other")
    UNEVEN_SPEED = _("uneven-speed"), CAUTION, _("the speed was uneven")
    WHOLE_RUN_DIFFERS = _("whole-run-differs"), SEVERE, _("the run as a whole had another rate")
    OWN_FIGURE = _("own-figure"), CAUTION, _("only the program's own figure is known")
    UNKNOWN_SHAPE = _("unknown-shape"), SEVERE, _("the log has no known shape")
    WRONG_LAYOUT = _("wrong-layout"), NOTE, _("the memory layout is a slow one")
    FELL_BACK = _("fell-back"), CAUTION, _("part of the step fell back to another way")
    STRAGGLER = _("straggler"), CAUTION, _("a rank or node holds the others back")
    MIXED_ENVIRONMENT = _("mixed-environment"), SEVERE, _("trials ran in different environments")
    RESUMED = _("resumed"), CAUTION, _("the training was resumed")
    TARGET_NOT_REACHED = _("target-not-reached"), CAUTION, _("the target was not always reached")
    ACCURACY_SPREAD = _("accuracy-spread"), CAUTION, _("seeds differ in their accuracy")
    RECIPE_CHANGED = _("recipe-changed"), NOTE, _("the recipe was changed")
    TRAINING_UNCOUNTED = (
        *(_("training-uncounted"), SEVERE),
        _("other processes or threads of the program trained too"),
    )
    UNEQUAL_TURNS = _("unequal-turns"), SEVERE, _("it is not certain what one step is")
    LONG_STEPS = _("long-steps"), CAUTION, _("a few long steps take much of the time")
    EVALUATION_IN_STEPS = _("evaluation-in-steps"), CAUTION, _("most steps evaluate as well")
    LINES_IN_BURSTS = _("lines-in-bursts"), CAUTION, _("lines came in bursts")


# By code, or code and variant. Values are named in braces.
SENTENCES: dict[str, str] = {
    "few-trials": "{n} trials are too few for a 95 % interval. Run at least {enough}.",
    "few-trials/one": "1 trial is too few for a 95 % interval. Run at least {enough}.",
    "noisy-trials": "Trials vary by {spread} (interquartile range over median). Stop other work on this"
    " machine, or add trials.",
    "failed-trials": "{failed} of {n} trials failed and are not in the figure. Read their logs first.",
    "window-too-short": "Only {steady} of {steps} steps are steady; {needed} are needed. Run more steps.",
    "window-too-short/log": "Only {steady} steady reports of {reports} are left, and {needed} are needed to"
    " tell warm-up from work: take a longer log.",
    "warmup-past-window": "Still warming up after {floor} steps; the first {first} are left out. Set"
    " warmup.steps to {first} or more.",
    "warmup-past-window/program": "Still warming up after {floor} steps; the first {first} are left out. Add"
    " `--warmup {first}`, or a larger number.",
    "warmup-past-window/log": "Warm-up took {first} of {reports} reports, more than any fixed rule would"
    " drop: take a longer log.",
    "never-settled": "Step times did not settle within {steps} steps. Run more steps, or look for drift in"
    " clocks, memory or data.",
    "never-settled/log": "The speed never settled within {reports} reports: take a longer log, or look for"
    " what moves it.",
    "data-bound": "Steps waited for data {wait} of the time. Add loader workers, or compare with synthetic"
    " data.",
    "data-bound/waiting": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data; steps"
    " waited for data {wait} of the time: raise `workers`, or take a faster `loader`.",
    "data-bound/contending": "It loses {lost} to its data: {own} {unit}/s, {synthetic} on synthetic data;"
    " steps hardly waited for it, so the loader takes cores or device time from the training: lower"
    " `workers`, or take a `loader` that works elsewhere.",
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
    "scope-ambiguous": "The log gives neither rates nor times of counted steps: look for another log of the"
    " same run.",
    "scope-ambiguous/steps": "The log tells steps ({rate} steps/s) but not {missing}.",
    "scope-ambiguous/device": "Its rates ({rate} {unit}/s) are one device's, and it does not say how many"
    " ran: give --devices.",
    "scope-ambiguous/several": "About {ranks} processes print each step where one should, and none says"
    " whether its rate is its own or that of all: look for it in the launch command.",
    "superlinear-scaling": "{devices} devices reach {efficiency} of linear scaling, which is more than"
    " linear. Check the one-device baseline, and whether samples are counted per rank.",
    "collapsed-scaling": "{devices} devices reach only {efficiency} of linear scaling. Check the links"
    " between them, and the per-device batch.",
    "nan-loss": "The loss was not a finite number in {bad} of {reports} reports: lower the learning rate or"
    " check the loss scale.",
    "loss-not-falling": "The loss went from {before} to {after} over {steps} steps: check that the step"
    " really trains.",
    "copied-logs": "{runs} runs have the same progress lines, the first of them run {number} of {log}: count"
    " it once.",
    "mean-of-rates": "The program's own {rate} {unit}/s is a mean of rates, {excess} against samples over"
    " time: use the figure given here.",
    "run-cut-short": "The run did not end well ({ended}): use a log of a run that finished.",
    "out-of-order": "Its lines are not in order: they may be of several runs, or sorted; use the log as it"
    " was written.",
    "lines-missing": "{missing}: see that the log is whole and holds one run.",
    "settings-conflict": "The log has more than one value of {settings}, and the first was used: see that it"
    " holds one run.",
    "uneven-speed": "Half of its steps ran at {rate} {unit}/s or more, {excess} against the whole window:"
    " look for what stalled the others.",
    "whole-run-differs": "The run as a whole, from its first count to its last, gives {rate} {unit}/s: check"
    " what its counts mean.",
    "own-figure": "Only the program's own conclusion ({rate} {unit}/s) tells the speed, warm-up and pauses"
    " included: take a log with times or rates.",
    "unknown-shape": "The log has no progress line of a known shape: it stopped before its first one, or"
    " another version of the program wrote it; describe its lines in a format of your own (--format"
    " FILE.yaml).",
    "wrong-layout": "{precision} ran in NCHW, the slow layout for tensor cores: use layout NHWC.",
    "fell-back": "Part of the step was done another way than it should ({first}): do not take it for the"
    " best that the device can do.",
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
    "mixed-environment": "The trials ran in {environments} different environments. Run all of them in one.",
    "resumed": "The training was killed and resumed {count} times; its clocks never paused and hold {lost} s"
    " in which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/once": "The training was killed and resumed once; its clocks never paused and hold {lost} s in"
    " which nothing that counts was trained: run it again in one piece where the time matters.",
    "resumed/damaged": "The training was killed and resumed (times: {count}), past damaged checkpoints"
    " ({skipped}); its clocks never paused and hold {lost} s in which nothing that counts was trained: run"
    " it again in one piece where the time matters.",
    "target-not-reached": "{missed} of {decided} trials did not reach {target} and count as longer than any"
    " that did: train more epochs, or check the recipe.",
    "target-not-reached/best": "{missed} of {decided} trials did not reach {target} (best {metric} {best})"
    " and count as longer than any that did: train more epochs, or check the recipe.",
    "accuracy-spread": "The best {metric} of {seeds} seeds lies between {low} and {high}: train more seeds,"
    " and do not rank by one of them.",
    "recipe-changed": "The recipe {recipe} was changed ({departures}): compare accuracy and time to train"
    " with nothing that followed it.",
    "training-uncounted": "{count} more of the program's processes or threads trained than the one that the"
    " figure is of. Train in one of them, or start them as ranks, as torchrun does.",
    "unequal-turns": "Optimizers stepped {turns} times, in no order that tells one round from the next: it"
    " is not certain what one step is. Call the probe after each round, or give --pattern a line of it.",
    "long-steps": "{count} of {steps} steps, one every {every}, take {share} of the time beyond a usual step"
    " ({usual}), as where a program evaluates or saves; without that the rate is {rate} {unit}/s. Where it"
    ' is no training, call the probe, and run.mark("eval") after it.',
    "long-steps/irregular": "{count} of {steps} steps take {share} of the time beyond a usual step"
    " ({usual}): the program evaluated, saved or was held up; without that the rate is {rate} {unit}/s."
    ' Where it is no training, call the probe, and run.mark("eval") after it.',
    "evaluation-in-steps": "Most steps evaluate: for {share} of the time a model was in evaluation mode with"
    " no backward pass, which is counted as training, as of a teacher. Without that the rate is {rate}"
    " {unit}/s.",
    "lines-in-bursts": "The {lines} lines of steps came in {bursts} bursts, so step times are means over"
    " one. Let the program flush each line (`python -u`, `stdbuf -oL`), and stop other work on this machine.",
}


@dataclass(frozen=True)
class Doubt:
    """One doubt about one figure; `message` is a whole sentence that ends in what to do.

    `sentence` names the message in SENTENCES and `values` fill it; what version 0.1.0 stored has neither.
    Of a result's doubt that came from its trials, `trials` of `of` have it.
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
        few = self.trials is not None and self.of is not None and 2 * self.trials < self.of
        return CAUTION if few and self.code.severity is SEVERE else self.code.severity

    @property
    def text(self) -> str:
        """The message, which can be translated also where it was stored and read back as plain text."""
        template = SENTENCES.get(self.sentence)
        if template is None or isinstance(self.message, Message):
            return self.message
        try:
            sentence = Message(template, **dict(self.values))
        except (KeyError, IndexError):  # of a version whose sentence had other values
            return self.message
        whole = sentence if self.trials is None else _in_trials(sentence, self.trials, self.of)
        return whole.worded(self.message)

    @property
    def clause(self) -> str:
        """What a verdict says of it: `the host was busy in 4 of 6 trials`."""
        if self.trials is None:
            return self.code.clause
        return _(
            "{clause} in {trials} of {of} trials", clause=self.code.clause, trials=self.trials, of=self.of
        )


def doubt(code: DoubtCode, variant: str = "", /, **values: object) -> Doubt:
    """Return the doubt with the sentence of its code, or of a variant of it, filled with these values."""
    name = f"{code.value}/{variant}" if variant else code.value
    texts = {key: value if isinstance(value, Message) else str(value) for key, value in values.items()}
    return Doubt(code, Message(SENTENCES[name], **texts), name, tuple(texts.items()))


def doubt_in_trials(first: Doubt, trials: int, of: int) -> Doubt:
    """Return the doubt of a result that so many of its trials have, in the words of the first of them."""
    return replace(first, message=_in_trials(first.text, trials, of), trials=trials, of=of)


def _in_trials(sentence: str, trials: int, of: int | None) -> Message:
    return _("In {trials} of {of} trials: {sentence}", trials=trials, of=of, sentence=sentence)
