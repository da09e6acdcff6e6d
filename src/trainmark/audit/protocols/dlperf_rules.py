"""DLPerf's rules as data, by framework.

PyTorch: NVIDIA's ResNet-50 and BERT, and torch's own examples/imagenet. TensorFlow: NVIDIA's ResNet-50 and
BERT (TF 1), and the official models (TF 2). MXNet: NVIDIA's ResNet-50, gluon-cv's, and gluon-nlp's BERT.
MindSpore, whose ranks print untagged sink epochs into one log. PaddlePaddle 1.8: ResNet-50 and BERT.
"""

from __future__ import annotations

import re

from trainmark.audit.protocols import defects, dlperf, estimators, ours, rule
from trainmark.audit.protocols.protocol import DATED_WITH_COMMA, TIME_OF_DAY, BatchWindow
from trainmark.audit.protocols.rule import DlperfRule

DATE_TIME = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}"
NVIDIA_PYTORCH = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/PyTorch"

PYTORCH_RULES = (
    DlperfRule(
        name="dlperf-pytorch-rn50",
        title="DLPerf, NVIDIA's PyTorch ResNet-50 v1.5: time between two iterations",
        source=f"{NVIDIA_PYTORCH}/resnet50v1.5/extract_pytorch_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"Iteration: "),
        step=re.compile(r"Iteration: (.*)  train\.loss :"),
        skip_through=5,
        value=re.compile(f"({DATE_TIME})"),
        estimate=estimators.between_lines,
        span=rule.plain_span,
        progress=re.compile(
            rf"(?P<time>{DATE_TIME}) - Epoch: 0 Iteration: (?P<step>\d{{1,12}})  train\.loss"
        ),
        ours=ours.wall_clock,
    ),
    DlperfRule(
        name="dlperf-pytorch-bert",
        title="DLPerf, NVIDIA's PyTorch BERT: time between two iterations",
        source=f"{NVIDIA_PYTORCH}/BERT/extract_pytorch_logs_time.py",
        window=BatchWindow(20, 110),
        keep=re.compile(r"Training Epoch:"),
        step=re.compile(r"Training Iteration: (.*)  average_loss"),
        skip_through=5,
        value=re.compile(f"({DATE_TIME})"),
        estimate=estimators.between_lines,
        span=rule.plain_span,
        progress=re.compile(
            rf"(?P<time>{DATE_TIME}) - Training Epoch: \d+ Training Iteration: (?P<step>\d{{1,12}})  average"
        ),
        ours=ours.wall_clock,
    ),
    DlperfRule(
        name="dlperf-pytorch-examples",
        title="DLPerf, torch's examples/imagenet: mean of the printed step times",
        source="Oneflow-Inc/DLPerf, PyTorch/resnet50v1.5/extract_pytorch_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"Epoch: "),
        step=re.compile(r"\[.*\]\[(.*)\]"),
        skip_through=5,
        value=re.compile(r"(\d{1}.\d{1,3}\s)"),
        estimate=estimators.mean_of_step_times,
        span=rule.plain_span,
        progress=re.compile(r"Epoch: \[0\]\[ *(?P<step>\d{1,12})/ *\d+\]\s+Time +(?P<seconds>\d+\.\d+)"),
        step_offset=1,
        ours=ours.step_times,
        checks=(defects.ranks_counted_as_steps, defects.tens_digit_lost),
    ),
)


NVIDIA_TENSORFLOW = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/TensorFlow"
RESNET = f"{NVIDIA_TENSORFLOW}/Classification/ConvNets/resnet50v1.5"
BERT = f"{NVIDIA_TENSORFLOW}/LanguageModeling/BERT"
OFFICIAL = "Oneflow-Inc/DLPerf, TensorFlow/resnet50v1.5"
HOURS = r"\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}"


def bert_marks(window: BatchWindow) -> tuple[str, str]:
    return f"Iteration: {window.warmup}", f"Iteration: {window.train}"


IMGS_PER_SEC = re.compile(rf"(?P<time>{DATE_TIME}) - .*imgs_per_sec : ")
SEQ_PER_SEC = re.compile(rf"(?P<time>{DATE_TIME}) - Iteration: (?P<step>\d{{1,12}}) +throughput_train : ")
TIME_HISTORY = re.compile(rf"(?P<time>{HOURS}).*TimeHistory.* between steps \d+ and (?P<step>\d{{1,12}})")

TENSORFLOW_RULES = (
    DlperfRule(
        name="dlperf-tensorflow-rn50",
        title="DLPerf, NVIDIA's TensorFlow ResNet-50 v1.5: mean of the printed rates",
        source=f"{RESNET}/extract_tensorflow_logs.py",
        window=BatchWindow(20, 120),
        smallest_warmup=20,
        keep=re.compile(r" imgs_per_sec "),
        value=re.compile(r" imgs_per_sec : (\d+.\d+) "),
        rate=lambda value, run: round(value, 2),
        estimate=estimators.mean_of_rates,
        span=rule.after_hidden_span,
        progress=IMGS_PER_SEC,
        step_offset=rule.TENSORFLOW_HIDES,
        ours=ours.wall_clock,
        checks=(defects.shortened, defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-tensorflow-rn50-time",
        title="DLPerf, NVIDIA's TensorFlow ResNet-50 v1.5: time between two lines",
        source=f"{RESNET}/extract_tensorflow_logs_time.py",
        window=BatchWindow(20, 120),
        smallest_warmup=20,
        keep=re.compile(r" imgs_per_sec "),
        value=re.compile(f"({DATE_TIME})"),
        estimate=estimators.between_lines,
        span=rule.after_hidden_time_span,
        progress=IMGS_PER_SEC,
        step_offset=rule.TENSORFLOW_HIDES,
        ours=ours.wall_clock,
    ),
    DlperfRule(
        name="dlperf-tensorflow-bert",
        title="DLPerf, NVIDIA's TensorFlow BERT: mean of the printed rates",
        source=f"{BERT}/extract_tensorflow_logs.py",
        window=BatchWindow(20, 120),
        multiple=10,
        keep=re.compile(r"Iteration: \d+0 .*throughput_train : \d+\.\d+ seq/s"),
        value=re.compile(r"throughput_train : (\d+\.\d+) seq/s"),
        estimate=estimators.mean_of_rates,
        span=rule.every_tenth_span,
        progress=SEQ_PER_SEC,
        ours=ours.wall_clock,
        average_digits=4,
        checks=(defects.shortened, defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-tensorflow-bert-time",
        title="DLPerf, NVIDIA's TensorFlow BERT: time between two iterations found by their text",
        source=f"{BERT}/extract_tensorflow_logs_time.py",
        window=BatchWindow(20, 120),
        multiple=10,
        keep=re.compile(r" throughput_train : "),
        value=re.compile(f"({DATE_TIME})"),
        estimate=estimators.between_marks(bert_marks),
        span=rule.plain_span,
        progress=SEQ_PER_SEC,
        ours=ours.wall_clock,
        average_digits=4,
        checks=(defects.start_mark_recurs(bert_marks),),
    ),
    DlperfRule(
        name="dlperf-tensorflow2-rn50",
        title="DLPerf, TensorFlow 2's official ResNet-50: mean of the rates of every 100 steps",
        source=f"{OFFICIAL}/extract_tensorflow_logs.py",
        window=BatchWindow(100, 600),
        multiple=100,
        keep=re.compile(r"TimeHistory"),
        value=re.compile(r", (\d+.\d+) examples/second "),
        estimate=estimators.mean_of_rates,
        span=rule.every_hundredth_span,
        progress=TIME_HISTORY,
        clock=TIME_OF_DAY,
        ours=ours.wall_clock,
        checks=(defects.shortened, defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-tensorflow2-rn50-time",
        title="DLPerf, TensorFlow 2's official ResNet-50: time of day between two lines",
        source=f"{OFFICIAL}/extract_tensorflow_logs_time.py",
        window=BatchWindow(100, 600),
        multiple=100,
        keep=re.compile(r"TimeHistory"),
        value=re.compile(f"({HOURS})"),
        clock=TIME_OF_DAY,
        estimate=estimators.between_lines,
        span=rule.every_hundredth_span,
        progress=TIME_HISTORY,
        ours=ours.wall_clock,
        checks=(defects.divides_by_other_steps(100), defects.passed_midnight),
    ),
)


NVIDIA_MXNET = "Oneflow-Inc/DLPerf, NVIDIADeepLearningExamples/MxNet/Classification/RN50v1.5"
LOGGING_TIME = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2},\d{1,6}"
SPEED = re.compile(r"Speed: (\d+.\d+) samples/sec")
PROGRESS = re.compile(rf"(?P<time>{LOGGING_TIME}).* Epoch\[0\] Batch \[(?:\d+-)?(?P<step>\d{{1,12}})\]")

MXNET_RULES = (
    DlperfRule(
        name="dlperf-mxnet",
        title="DLPerf, NVIDIA's MXNet ResNet-50 v1.5: median over ranks, then mean of the rates",
        source=f"{NVIDIA_MXNET}/extract_mxnet_logs.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r" Epoch\[0\] Batch "),
        value=SPEED,
        rate=lambda value, run: round(value, 2),
        estimate=estimators.median_over_ranks(),
        span=rule.mxnet_span,
        progress=PROGRESS,
        clock=DATED_WITH_COMMA,
        step_offset=1,
        ours=ours.wall_clock,
        checks=(defects.warmup_jumps(20), defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-mxnet-time",
        title="DLPerf, NVIDIA's MXNet ResNet-50 v1.5: time between two lines",
        source=f"{NVIDIA_MXNET}/extract_mxnet_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r" Epoch\[0\] Batch "),
        value=re.compile(f"({LOGGING_TIME})"),
        clock=DATED_WITH_COMMA,
        estimate=estimators.between_lines,
        span=rule.mxnet_time_span,
        progress=PROGRESS,
        step_offset=1,
        ours=ours.wall_clock,
    ),
    DlperfRule(
        name="dlperf-gluon",
        title="DLPerf, gluon-cv's ResNet-50 v1b: mean of the printed rates",
        source="Oneflow-Inc/DLPerf, MxNet/Classification/RN50v1b/extract_mxnet_logs.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"Epoch\[0\] Batch\["),
        value=SPEED,
        rate=lambda value, run: round(value, 2),
        estimate=estimators.median_over_ranks(one_rank_prints=True),
        span=rule.mxnet_span,
        progress=re.compile(r"Epoch\[0\] Batch\[.*Speed: (?P<rate>\d+\.\d+) samples/sec"),
        ours=ours.harmonic_rates,
        checks=(defects.warmup_jumps(20), defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-mxnet-bert",
        title="DLPerf, gluon-nlp's BERT: median over ranks of batch over latency, then mean",
        source="Oneflow-Inc/DLPerf, MxNet/BERT/extract_mxnet_logs.py",
        window=BatchWindow(100, 200),
        keep=re.compile(r"throughput="),
        value=re.compile(r"latency=(\d+.\d+) ms/batch"),
        rate=lambda value, run: 1000.0 / round(value, 1) * run.batch * run.nodes * run.devices,
        estimate=estimators.median_over_ranks(),
        span=rule.mxnet_bert_span,
        progress=re.compile(r"throughput=.*latency=(?P<ms>\d+\.\d+) ms/batch"),
        ours=ours.step_times,
        checks=(defects.warmup_jumps(100), defects.biased_mean),
    ),
)


MINDSPORE_RULES = (
    DlperfRule(
        name="dlperf-mindspore",
        title="DLPerf, MindSpore ResNet-50 v1.5: the sum of all ranks' epoch times",
        source="Oneflow-Inc/DLPerf, MindSpore/resnet50v1.5/extract_mindspore_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"epoch time:"),
        value=estimators.EPOCH_MS,
        estimate=estimators.sum_over_ranks,
        span=rule.plain_span,
        progress=estimators.EPOCH_MS,
        ours=ours.sink_epochs,
        checks=(defects.uneven_ranks, defects.seconds_taken_for_ms),
    ),
    DlperfRule(
        name="dlperf-mindspore-bert",
        title="DLPerf, MindSpore BERT: the sum of all ranks' epoch times, by step alone",
        source="Oneflow-Inc/DLPerf, MindSpore/bert/extract_mindspore_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"epoch time:"),
        value=estimators.EPOCH_MS,
        estimate=estimators.sum_over_ranks_by_step,
        span=rule.plain_span,
        progress=estimators.EPOCH_MS,
        ours=ours.sink_epochs,
        checks=(defects.uneven_ranks, defects.seconds_taken_for_ms),
    ),
)


PADDLE_TIME = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2},\d{3}"


def paddle_marks(window: BatchWindow) -> tuple[str, str]:
    return f"train batch {window.warmup - 1}]", f"train batch {window.train - 1}]"


PADDLE_RULES = (
    DlperfRule(
        name="dlperf-paddle",
        title="DLPerf, PaddlePaddle ResNet-50 v1.5: mean of batch over elapsed time",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/resnet50v1.5/extract_paddle_logs.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"elapse"),
        value=re.compile(r".*elapse (.*?) sec", re.S),
        rate=lambda value, run: round(run.global_batch / value, 4),
        estimate=estimators.mean_of_rates,
        span=rule.plain_span,
        progress=re.compile(r"train batch (?P<step>\d{1,12})\].*elapse (?P<seconds>\d+\.\d+) sec"),
        step_offset=1,
        ours=ours.step_times,
        checks=(defects.shortened, defects.biased_mean),
    ),
    DlperfRule(
        name="dlperf-paddle-time",
        title="DLPerf, PaddlePaddle ResNet-50 v1.5: time between two batches",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/resnet50v1.5/extract_paddle_logs_time.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"elapse"),
        value=re.compile(f"({PADDLE_TIME})"),
        clock=DATED_WITH_COMMA,
        estimate=estimators.between_marks(paddle_marks),
        span=rule.plain_span,
        progress=re.compile(rf"(?P<time>{PADDLE_TIME}).*train batch (?P<step>\d{{1,12}})\].*elapse"),
        step_offset=1,
        ours=ours.wall_clock,
        checks=(defects.start_mark_recurs(paddle_marks),),
    ),
    DlperfRule(
        name="dlperf-paddle-bert",
        title="DLPerf, PaddlePaddle BERT: mean of steps per second times the batch of one node",
        source="Oneflow-Inc/DLPerf, PaddlePaddle/bert/extract_paddle_logs.py",
        window=BatchWindow(20, 120),
        keep=re.compile(r"speed:"),
        value=re.compile(r" speed: ([0-9]+\.[0-9]+) steps/s"),
        rate=lambda value, run: round(value * run.devices * run.batch, 4),
        estimate=estimators.mean_of_rates,
        span=rule.plain_span,
        progress=re.compile(r" speed: (?P<rate>[0-9]+\.[0-9]+) steps/s"),
        ours=ours.harmonic_steps_a_second,
        checks=(defects.shortened, defects.no_node_factor),
    ),
)

RULES = (*PYTORCH_RULES, *TENSORFLOW_RULES, *MXNET_RULES, *MINDSPORE_RULES, *PADDLE_RULES)
PROTOCOLS = tuple(dlperf.protocol(each) for each in RULES)


RULES = (*PYTORCH_RULES, *TENSORFLOW_RULES, *MXNET_RULES, *MINDSPORE_RULES, *PADDLE_RULES)
PROTOCOLS = tuple(dlperf.protocol(each) for each in RULES)
