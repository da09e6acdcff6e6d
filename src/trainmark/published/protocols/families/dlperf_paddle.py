"""DLPerf's rules for PaddlePaddle 1.8: ResNet-50 and BERT."""

from __future__ import annotations

import re

from trainmark.published.protocols import checks, dlperf, estimators, ours
from trainmark.published.protocols.clock import DATED_WITH_COMMA
from trainmark.published.protocols.families import spans
from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Rule

MOMENT = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2},\d{3}"


def marks(window: Window) -> tuple[str, str]:
    return f"train batch {window.warmup - 1}]", f"train batch {window.train - 1}]"


RULES = (
    Rule(
        name="dlperf-paddle",
        title="DLPerf, PaddlePaddle ResNet-50 v1.5: mean of batch over elapsed time",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/resnet50v1.5/extract_paddle_logs.py",
        window=Window(20, 120),
        keep=re.compile(r"elapse"),
        value=re.compile(r".*elapse (.*?) sec", re.S),
        rate=lambda value, run: round(run.global_batch / value, 4),
        estimate=estimators.mean_of_rates,
        span=spans.plain,
        progress=re.compile(r"train batch (?P<step>\d{1,12})\].*elapse (?P<seconds>\d+\.\d+) sec"),
        step_offset=1,
        ours=ours.step_times,
        checks=(checks.shortened, checks.biased_mean),
    ),
    Rule(
        name="dlperf-paddle-time",
        title="DLPerf, PaddlePaddle ResNet-50 v1.5: time between two batches",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/resnet50v1.5/extract_paddle_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r"elapse"),
        value=re.compile(f"({MOMENT})"),
        clock=DATED_WITH_COMMA,
        estimate=estimators.between_marks(marks),
        span=spans.plain,
        progress=re.compile(rf"(?P<time>{MOMENT}).*train batch (?P<step>\d{{1,12}})\].*elapse"),
        step_offset=1,
        ours=ours.wall_clock,
        checks=(checks.start_mark_recurs(marks),),
    ),
    Rule(
        name="dlperf-paddle-bert",
        title="DLPerf, PaddlePaddle BERT: mean of steps per second times the batch of one node",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/bert/extract_paddle_logs.py",
        window=Window(20, 120),
        keep=re.compile(r"speed:"),
        value=re.compile(r" speed: ([0-9]+\.[0-9]+) steps/s"),
        rate=lambda value, run: round(value * run.devices * run.batch, 4),
        estimate=estimators.mean_of_rates,
        span=spans.plain,
        progress=re.compile(r" speed: (?P<rate>[0-9]+\.[0-9]+) steps/s"),
        ours=ours.harmonic_steps_a_second,
        checks=(checks.shortened, checks.no_node_factor),
    ),
)
PROTOCOLS = tuple(dlperf.protocol(rule) for rule in RULES)
