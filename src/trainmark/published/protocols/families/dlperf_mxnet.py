"""DLPerf's rules for MXNet: NVIDIA's ResNet-50, gluon-cv's, and gluon-nlp's BERT."""

from __future__ import annotations

import re

from trainmark.published.protocols import checks, dlperf, estimators, ours
from trainmark.published.protocols.clock import DATED_WITH_COMMA
from trainmark.published.protocols.families import spans
from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Rule

NVIDIA = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5"
MOMENT = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2},\d{1,6}"
SPEED = re.compile(r"Speed: (\d+.\d+) samples/sec")
PROGRESS = re.compile(rf"(?P<time>{MOMENT}).* Epoch\[0\] Batch \[(?:\d+-)?(?P<step>\d{{1,12}})\]")

RULES = (
    Rule(
        name="dlperf-mxnet",
        title="DLPerf, NVIDIA's MXNet ResNet-50 v1.5: median over ranks, then mean of the rates",
        source=f"{NVIDIA}/extract_mxnet_logs.py",
        window=Window(20, 120),
        keep=re.compile(r" Epoch\[0\] Batch "),
        value=SPEED,
        rate=lambda value, run: round(value, 2),
        estimate=estimators.median_over_ranks(),
        span=spans.mxnet,
        progress=PROGRESS,
        clock=DATED_WITH_COMMA,
        step_offset=1,
        ours=ours.wall_clock,
        checks=(checks.warmup_jumps(20), checks.biased_mean),
    ),
    Rule(
        name="dlperf-mxnet-time",
        title="DLPerf, NVIDIA's MXNet ResNet-50 v1.5: time between two lines",
        source=f"{NVIDIA}/extract_mxnet_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r" Epoch\[0\] Batch "),
        value=re.compile(f"({MOMENT})"),
        clock=DATED_WITH_COMMA,
        estimate=estimators.between_lines,
        span=spans.mxnet_time,
        progress=PROGRESS,
        step_offset=1,
        ours=ours.wall_clock,
    ),
    Rule(
        name="dlperf-gluon",
        title="DLPerf, gluon-cv's ResNet-50 v1b: mean of the printed rates",
        source="Oneflow-Inc/DLPerf, MxNet/Classification/RN50v1b/extract_mxnet_logs.py",
        window=Window(20, 120),
        keep=re.compile(r"Epoch\[0\] Batch\["),
        value=SPEED,
        rate=lambda value, run: round(value, 2),
        estimate=estimators.median_over_ranks(one_rank_prints=True),
        span=spans.mxnet,
        progress=re.compile(r"Epoch\[0\] Batch\[.*Speed: (?P<rate>\d+\.\d+) samples/sec"),
        ours=ours.harmonic_rates,
        checks=(checks.warmup_jumps(20), checks.biased_mean),
    ),
    Rule(
        name="dlperf-mxnet-bert",
        title="DLPerf, gluon-nlp's BERT: median over ranks of batch over latency, then mean",
        source="Oneflow-Inc/DLPerf, MxNet/BERT/extract_mxnet_logs.py",
        window=Window(100, 200),
        keep=re.compile(r"throughput="),
        value=re.compile(r"latency=(\d+.\d+) ms/batch"),
        rate=lambda value, run: 1000.0 / round(value, 1) * run.batch * run.nodes * run.devices,
        estimate=estimators.median_over_ranks(),
        span=spans.mxnet_bert,
        progress=re.compile(r"throughput=.*latency=(?P<ms>\d+\.\d+) ms/batch"),
        ours=ours.step_times,
        checks=(checks.warmup_jumps(100), checks.biased_mean),
    ),
)
PROTOCOLS = tuple(dlperf.protocol(rule) for rule in RULES)
