"""Doubts in words: their names, a clause for a verdict, and the sentence that says what to do."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.doubts import IN_TRIALS, SENTENCES, Doubt, DoubtCode, Severity
from trainmark.view.message import Message, _, joined

CODES = (
    *(_("few-trials"), _("noisy-trials"), _("failed-trials"), _("window-too-short")),
    *(_("warmup-past-window"), _("never-settled"), _("data-bound"), _("throttled"), _("device-shared")),
    *(_("host-busy"), _("host-clock"), _("scope-ambiguous"), _("superlinear-scaling")),
    *(_("collapsed-scaling"), _("nan-loss"), _("loss-not-falling"), _("copied-logs"), _("mean-of-rates")),
    *(_("run-cut-short"), _("out-of-order"), _("lines-missing"), _("settings-conflict")),
    *(_("uneven-speed"), _("whole-run-differs"), _("own-figure"), _("unknown-shape"), _("wrong-layout")),
    *(_("fell-back"), _("straggler"), _("mixed-environment"), _("resumed"), _("target-not-reached")),
    *(_("accuracy-spread"), _("recipe-changed"), _("training-uncounted"), _("unequal-turns")),
    *(_("evaluation-in-steps"), _("long-steps"), _("lines-in-bursts")),
)
KNOWN = {str(code): code for code in CODES}


def doubt_name(code: str) -> str:
    """Return the name of a doubt; one that a newer version has made stays as it is."""
    return KNOWN.get(code, code)


def doubt_names(codes: Sequence[str]) -> Message:
    return joined(list(map(doubt_name, codes)), ", ")


CLAUSES: dict[DoubtCode, Message] = {
    DoubtCode.FEW_TRIALS: _("too few trials for a 95 % interval"),
    DoubtCode.NOISY_TRIALS: _("trials vary"),
    DoubtCode.FAILED_TRIALS: _("some trials failed"),
    DoubtCode.WINDOW_TOO_SHORT: _("the steady window was too short"),
    DoubtCode.WARMUP_PAST_WINDOW: _("warm-up lasted longer than allowed for"),
    DoubtCode.NEVER_SETTLED: _("step times never settled"),
    DoubtCode.DATA_BOUND: _("steps waited for data"),
    DoubtCode.THROTTLED: _("clocks were throttled"),
    DoubtCode.DEVICE_SHARED: _("other processes used the device"),
    DoubtCode.HOST_BUSY: _("the host was busy"),
    DoubtCode.HOST_CLOCK: _("the host timed the steps of a GPU"),
    DoubtCode.SCOPE_AMBIGUOUS: _("it is not known what the rate counts"),
    DoubtCode.SUPERLINEAR: _("scaling is more than linear"),
    DoubtCode.COLLAPSED_SCALING: _("scaling collapsed"),
    DoubtCode.NAN_LOSS: _("the loss was not a number"),
    DoubtCode.LOSS_NOT_FALLING: _("the loss did not fall"),
    DoubtCode.COPIED_LOGS: _("logs are copies of one another"),
    DoubtCode.MEAN_OF_RATES: _("the program's own figure is a mean of rates"),
    DoubtCode.RUN_CUT_SHORT: _("the run did not end well"),
    DoubtCode.OUT_OF_ORDER: _("the lines of the log are out of order"),
    DoubtCode.LINES_MISSING: _("the log lacks lines"),
    DoubtCode.SETTINGS_CONFLICT: _("settings contradict each other"),
    DoubtCode.UNEVEN_SPEED: _("the speed was uneven"),
    DoubtCode.WHOLE_RUN_DIFFERS: _("the run as a whole had another rate"),
    DoubtCode.OWN_FIGURE: _("only the program's own figure is known"),
    DoubtCode.UNKNOWN_SHAPE: _("the log has no known shape"),
    DoubtCode.WRONG_LAYOUT: _("the memory layout is a slow one"),
    DoubtCode.FELL_BACK: _("part of the step fell back to another way"),
    DoubtCode.STRAGGLER: _("a rank or node holds the others back"),
    DoubtCode.MIXED_ENVIRONMENT: _("trials ran in different environments"),
    DoubtCode.RESUMED: _("the training was resumed"),
    DoubtCode.TARGET_NOT_REACHED: _("the target was not always reached"),
    DoubtCode.ACCURACY_SPREAD: _("seeds differ in their accuracy"),
    DoubtCode.RECIPE_CHANGED: _("the recipe was changed"),
    DoubtCode.TRAINING_UNCOUNTED: _("other processes or threads of the program trained too"),
    DoubtCode.UNEQUAL_TURNS: _("it is not certain what one step is"),
    DoubtCode.EVALUATION_IN_STEPS: _("most steps evaluate as well"),
    DoubtCode.LONG_STEPS: _("a few long steps take much of the time"),
    DoubtCode.LINES_IN_BURSTS: _("lines came in bursts"),
}
SEVERITIES = {Severity.SEVERE: _("severe"), Severity.CAUTION: _("caution"), Severity.NOTE: _("note")}
GRAVEST_FIRST = tuple(Severity)


def doubt_sentence(doubt: Doubt) -> str:
    """Return the message; in English only where an earlier version stored it without its values."""
    try:
        sentence = Message(SENTENCES[doubt.sentence], **dict(doubt.values))
    except (KeyError, IndexError):
        return doubt.message
    if doubt.trials is None:
        return sentence
    return Message(IN_TRIALS, trials=doubt.trials, of=doubt.of, sentence=sentence)


def doubt_clause(doubt: Doubt) -> Message:
    """Return a few words for a verdict: `the host was busy in 4 of 6 trials`."""
    clause = CLAUSES[doubt.code]
    if doubt.trials is None:
        return clause
    return _("{clause} in {trials} of {of} trials", clause=clause, trials=doubt.trials, of=doubt.of)
