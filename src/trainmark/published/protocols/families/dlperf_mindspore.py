"""DLPerf's rules for MindSpore, whose ranks print untagged sink epochs into one log."""

from __future__ import annotations

import re

from trainmark.published.protocols import checks, dlperf, estimators, ours
from trainmark.published.protocols.families import spans
from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Rule

RULES = (
    Rule(
        name="dlperf-mindspore",
        title="DLPerf, MindSpore ResNet-50 v1.5: the sum of all ranks' epoch times",
        source="Oneflow-Inc/DLPerf, MindSpore/resnet50v1.5/extract_mindspore_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r"epoch time:"),
        value=estimators.EPOCH_MS,
        estimate=estimators.sum_over_ranks,
        span=spans.plain,
        progress=estimators.EPOCH_MS,
        ours=ours.sink_epochs,
        checks=(checks.uneven_ranks, checks.seconds_taken_for_ms),
    ),
    Rule(
        name="dlperf-mindspore-bert",
        title="DLPerf, MindSpore BERT: the sum of all ranks' epoch times, by step alone",
        source="Oneflow-Inc/DLPerf, MindSpore/bert/extract_mindspore_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r"epoch time:"),
        value=estimators.EPOCH_MS,
        estimate=estimators.sum_over_ranks_by_step,
        span=spans.plain,
        progress=estimators.EPOCH_MS,
        ours=ours.sink_epochs,
        checks=(checks.uneven_ranks, checks.seconds_taken_for_ms),
    ),
)
PROTOCOLS = tuple(dlperf.protocol(rule) for rule in RULES)
