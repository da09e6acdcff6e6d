"""DLPerf's rules for TensorFlow: NVIDIA's ResNet-50 and BERT (TF 1), and the official models (TF 2)."""

from __future__ import annotations

import re

from trainmark.published.protocols import checks, dlperf, estimators, ours
from trainmark.published.protocols.clock import TIME_OF_DAY
from trainmark.published.protocols.families import spans
from trainmark.published.protocols.families.dlperf_pytorch import MOMENT
from trainmark.published.protocols.protocol import Window
from trainmark.published.protocols.rule import Rule

NVIDIA = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/TensorFlow"
RESNET = f"{NVIDIA}/Classification/ConvNets/resnet50v1.5"
BERT = f"{NVIDIA}/LanguageModeling/BERT"
OFFICIAL = "Oneflow-Inc/DLPerf, TensorFlow/resnet50v1.5"
HOURS = r"\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}"


def bert_marks(window: Window) -> tuple[str, str]:
    return f"Iteration: {window.warmup}", f"Iteration: {window.train}"


IMGS_PER_SEC = re.compile(rf"(?P<time>{MOMENT}) - .*imgs_per_sec : ")
SEQ_PER_SEC = re.compile(rf"(?P<time>{MOMENT}) - Iteration: (?P<step>\d{{1,12}}) +throughput_train : ")
TIME_HISTORY = re.compile(rf"(?P<time>{HOURS}).*TimeHistory.* between steps \d+ and (?P<step>\d{{1,12}})")

RULES = (
    Rule(
        name="dlperf-tensorflow-rn50",
        title="DLPerf, NVIDIA's TensorFlow ResNet-50 v1.5: mean of the printed rates",
        source=f"{RESNET}/extract_tensorflow_logs.py",
        window=Window(20, 120),
        smallest_warmup=20,
        keep=re.compile(r" imgs_per_sec "),
        value=re.compile(r" imgs_per_sec : (\d+.\d+) "),
        rate=lambda value, run: round(value, 2),
        estimate=estimators.mean_of_rates,
        span=spans.after_hidden,
        progress=IMGS_PER_SEC,
        step_offset=spans.TENSORFLOW_HIDES,
        ours=ours.wall_clock,
        checks=(checks.shortened, checks.biased_mean),
    ),
    Rule(
        name="dlperf-tensorflow-rn50-time",
        title="DLPerf, NVIDIA's TensorFlow ResNet-50 v1.5: time between two lines",
        source=f"{RESNET}/extract_tensorflow_logs_time.py",
        window=Window(20, 120),
        smallest_warmup=20,
        keep=re.compile(r" imgs_per_sec "),
        value=re.compile(f"({MOMENT})"),
        estimate=estimators.between_lines,
        span=spans.after_hidden_time,
        progress=IMGS_PER_SEC,
        step_offset=spans.TENSORFLOW_HIDES,
        ours=ours.wall_clock,
    ),
    Rule(
        name="dlperf-tensorflow-bert",
        title="DLPerf, NVIDIA's TensorFlow BERT: mean of the printed rates",
        source=f"{BERT}/extract_tensorflow_logs.py",
        window=Window(20, 120),
        multiple=10,
        keep=re.compile(r"Iteration: \d+0 .*throughput_train : \d+\.\d+ seq/s"),
        value=re.compile(r"throughput_train : (\d+\.\d+) seq/s"),
        estimate=estimators.mean_of_rates,
        span=spans.every_tenth,
        progress=SEQ_PER_SEC,
        ours=ours.wall_clock,
        average_digits=4,
        checks=(checks.shortened, checks.biased_mean),
    ),
    Rule(
        name="dlperf-tensorflow-bert-time",
        title="DLPerf, NVIDIA's TensorFlow BERT: time between two iterations found by their text",
        source=f"{BERT}/extract_tensorflow_logs_time.py",
        window=Window(20, 120),
        multiple=10,
        keep=re.compile(r" throughput_train : "),
        value=re.compile(f"({MOMENT})"),
        estimate=estimators.between_marks(bert_marks),
        span=spans.plain,
        progress=SEQ_PER_SEC,
        ours=ours.wall_clock,
        average_digits=4,
        checks=(checks.start_mark_recurs(bert_marks),),
    ),
    Rule(
        name="dlperf-tensorflow2-rn50",
        title="DLPerf, TensorFlow 2's official ResNet-50: mean of the rates of every 100 steps",
        source=f"{OFFICIAL}/extract_tensorflow_logs.py",
        window=Window(100, 600),
        multiple=100,
        keep=re.compile(r"TimeHistory"),
        value=re.compile(r", (\d+.\d+) examples/second "),
        estimate=estimators.mean_of_rates,
        span=spans.every_hundredth,
        progress=TIME_HISTORY,
        clock=TIME_OF_DAY,
        ours=ours.wall_clock,
        checks=(checks.shortened, checks.biased_mean),
    ),
    Rule(
        name="dlperf-tensorflow2-rn50-time",
        title="DLPerf, TensorFlow 2's official ResNet-50: time of day between two lines",
        source=f"{OFFICIAL}/extract_tensorflow_logs_time.py",
        window=Window(100, 600),
        multiple=100,
        keep=re.compile(r"TimeHistory"),
        value=re.compile(f"({HOURS})"),
        clock=TIME_OF_DAY,
        estimate=estimators.between_lines,
        span=spans.every_hundredth,
        progress=TIME_HISTORY,
        ours=ours.wall_clock,
        checks=(checks.divides_by_other_steps(100), checks.passed_midnight),
    ),
)
PROTOCOLS = tuple(dlperf.protocol(rule) for rule in RULES)
