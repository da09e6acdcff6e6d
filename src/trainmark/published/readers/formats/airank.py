"""The lines that AI-Rank's rules ask of a submission: `- AI-Rank-log 1618119359.842 eval_accuracy:48.19, …`.

They tell the accuracy after an epoch, by time of day, and what the submitter concludes; the speed of a step
is not among them. Accuracies are fractions by the rules, and percentages in some submissions.
"""

import re

from trainmark.published.readers.format import Clock, Format

EVENT = rb"AI-Rank-log (?P<wall>\d{10}(?:\.\d+)?) "
ACCURACY = rb"eval_accuracy:(?P<top1>[^\s,]+),\s*total_epoch_cnt:(?P<epoch>\d+)"
EVALUATION = re.compile(EVENT + ACCURACY)
SUMMARY = re.compile(
    rb"AI-Rank-log \d{10}(?:\.\d+)? (?:target_quality_time:(?P<target_quality_time>[\d.]+)"
    rb"|total_use_time:(?P<seconds>[\d.]+)|avg_ips:(?P<rate>[\d.]+))"
)

FORMAT = Format(
    name="airank",
    title="AI-Rank's log lines",
    framework=None,
    # Once in a run: a trainer's own lines among these are to be read as that trainer's.
    sign=re.compile(EVENT + rb"test_begin"),
    step=EVALUATION,
    clock=Clock.UNIX,
    evaluation=EVALUATION,
    summary=SUMMARY,
)
