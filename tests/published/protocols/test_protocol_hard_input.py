"""Whatever stands in a log, a rule answers with a table or with one sentence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocol_logs import examples, mindspore, moments, mxnet, oneflow, paddle, place, pytorch, tensorflow

from trainmark.audit import protocols
from trainmark.base.errors import UserError

SCRAPS = [
    "Iteration: ",
    "Iteration: 20 ",
    "  train.loss :",
    "throughput_train : 1.5 seq/s",
    " imgs_per_sec : 0.0 ",
    "epoch: 1 step: 0,",
    "epoch time: 0.000 ms",
    "epoch time: 12x345",
    "Epoch: [0][x/5]",
    "Epoch[0] Batch [1]\tSpeed: 0.0 samples/sec",
    "elapse 0.0 sec",
    "train batch 119]",
    "2020-13-45 99:99:99.999999",
    "TimeHistory 25:61:61.1, 3x4 examples/second ",
    "throughput=1K latency=0.0 ms/batch",
    " speed: 0.0 steps/s",
    "train: epoch 0, iter 20, samples/s: 0.0",
    "num_nodes = 0",
    "- AI-Rank-log 1.0 eval_accuracy:0",
    ':::MLLOG {"key": "run_start", "time_ms": "x"}',
    ':::MLLOG {"key": "run_stop", "metadata": ["success"]}',
    "train.total_ips",
    "9" * 5000,
    "\x00\x1b[0m\r",
]
REAL = [
    pytorch(400.0, 128, 1),
    mindspore(400.0, 128, 1),
    examples((step, 0.4) for step in range(130)),
    tensorflow(moments(0.3, 110), [400.0] * 110),
    mxnet([[400.0]] * 120, moments(0.3, 120)),
    paddle(moments(0.3, 130), [0.3] * 130),
    oneflow([400.0] * 8, (1, 1, 128), unix=True),
]
LINES = st.lists(st.lists(st.sampled_from(SCRAPS), max_size=3).map(" ".join), max_size=12).map("\n".join)


@pytest.mark.parametrize("name", protocols.names())
@given(before=LINES, real=st.sampled_from(["", *REAL]), after=LINES)
@settings(max_examples=25)
def test_a_log_of_scraps_is_read_or_refused(tmp_path_factory, name, before, real, after):
    folder = tmp_path_factory.mktemp("logs", numbered=True)
    place(folder, "1n1g", "rn50_b128_fp32_1.log", f"{before}\n{real}{after}\n")
    try:
        reading = protocols.read(name, folder)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        protocols.as_printed(reading.table)
        protocols.as_json(reading.ours)
