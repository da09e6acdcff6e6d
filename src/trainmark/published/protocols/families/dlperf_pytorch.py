"""DLPerf's rules for PyTorch: NVIDIA's ResNet-50 and BERT, and torch's own examples/imagenet."""

from __future__ import annotations

import re

from trainmark.published.protocols import checks, dlperf, estimators, ours
from trainmark.published.protocols.families import spans
from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Rule

MOMENT = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}"
NVIDIA = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/PyTorch"

RULES = (
    Rule(
        name="dlperf-pytorch-rn50",
        title="DLPerf, NVIDIA's PyTorch ResNet-50 v1.5: time between two iterations",
        source=f"{NVIDIA}/resnet50v1.5/extract_pytorch_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r"Iteration: "),
        step=re.compile(r"Iteration: (.*)  train\.loss :"),
        skip_through=5,
        value=re.compile(f"({MOMENT})"),
        estimate=estimators.between_lines,
        span=spans.plain,
        progress=re.compile(rf"(?P<time>{MOMENT}) - Epoch: 0 Iteration: (?P<step>\d{{1,12}})  train\.loss"),
        ours=ours.wall_clock,
    ),
    Rule(
        name="dlperf-pytorch-bert",
        title="DLPerf, NVIDIA's PyTorch BERT: time between two iterations",
        source=f"{NVIDIA}/BERT/extract_pytorch_logs_time.py",
        window=Window(20, 110),
        keep=re.compile(r"Training Epoch:"),
        step=re.compile(r"Training Iteration: (.*)  average_loss"),
        skip_through=5,
        value=re.compile(f"({MOMENT})"),
        estimate=estimators.between_lines,
        span=spans.plain,
        progress=re.compile(
            rf"(?P<time>{MOMENT}) - Training Epoch: \d+ Training Iteration: (?P<step>\d{{1,12}})  average"
        ),
        ours=ours.wall_clock,
    ),
    Rule(
        name="dlperf-pytorch-examples",
        title="DLPerf, torch's examples/imagenet: mean of the printed step times",
        source="Oneflow-Inc/DLPerf, PyTorch/resnet50v1.5/extract_pytorch_logs_time.py",
        window=Window(20, 120),
        keep=re.compile(r"Epoch: "),
        step=re.compile(r"\[.*\]\[(.*)\]"),
        skip_through=5,
        value=re.compile(r"(\d{1}.\d{1,3}\s)"),
        estimate=estimators.mean_of_step_times,
        span=spans.plain,
        progress=re.compile(r"Epoch: \[0\]\[ *(?P<step>\d{1,12})/ *\d+\]\s+Time +(?P<seconds>\d+\.\d+)"),
        step_offset=1,
        ours=ours.step_times,
        checks=(checks.ranks_counted_as_steps, checks.tens_digit_lost),
    ),
)
PROTOCOLS = tuple(dlperf.protocol(rule) for rule in RULES)
