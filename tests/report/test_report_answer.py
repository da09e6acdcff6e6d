"""What a report says first: the subject, the verdict in words, the doubts each once."""

from dataclasses import replace

import pytest
from sample_documents import BUSY, DATA_BOUND, FEW, GPU, cpu, empty, h200, result, six

from trainmark.logs.ledger.entry import short_name
from trainmark.measure.doubts import DoubtCode, doubt, doubt_in_trials
from trainmark.measure.figure import Interval, Pauses
from trainmark.measure.result import result_verdict, run_verdict
from trainmark.pages import label
from trainmark.pages.run.answer import doubt_notes, source_sentences, subject, verdict_sentence
from trainmark.view.catalogue import translated

THROTTLED = doubt_in_trials(doubt(DoubtCode.THROTTLED, reasons="thermal", throttled=3, samples=9), 2, 6)


def measured(*doubts, **changes):
    """A result of 100 within 0.4 %."""
    made = result(GPU, 100.0, doubts=doubts)
    return replace(made, **{"throughput": 100.0, "interval": Interval(99.7, 100.4, 0.96), **changes})


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (h200(), "ResNet-50 v1.5 at 224², PyTorch 2.8 AMP/FP32, batch 128–256 per device, 1–8 × H200"),
        (six(), "ResNet-50 v1.5 at 64², 6 frameworks FP32, batch 4 per device, 1–2 × EPYC, 1 thread"),
        (empty(), ""),
    ],
    ids=["h200", "six", "empty"],
)
def test_the_subject_is_what_was_measured_and_on_what(document, line):
    assert subject(document.results) == line


def test_the_subject_of_a_users_own_program_is_its_name():
    own = replace(GPU, workload="mine", framework=None, framework_version=None, precision=None, axes=())
    assert subject([result(replace(own, device="Neoverse-N1"), 10.0)]) == "mine, batch 256, 1 × Neoverse-N1"


def test_a_subject_on_several_nodes_counts_them():
    placed = replace(GPU, nodes=4, devices_per_node=8, device="NVIDIA H200")
    assert subject([result(placed, 10.0)]).endswith("4 nodes, 32 × H200")


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("Intel(R) Xeon(R) Gold 5118 CPU @ 2.30GHz", "Xeon Gold 5118"),
        ("AMD EPYC 7763 64-Core Processor", "EPYC 7763"),
        ("NVIDIA", "NVIDIA"),
    ],
)
def test_a_device_is_named_without_its_maker(device, name):
    assert short_name(device) == name


@pytest.mark.parametrize(
    ("doubts", "changes", "sentence"),
    [
        ((), {}, "Reliable to ±0.4 %."),
        ((DATA_BOUND,), {}, "Reliable to ±0.4 %."),
        ((THROTTLED,), {}, "Reliable to ±0.4 %, but check first: clocks were throttled in 2 of 6 trials."),
        ((BUSY, THROTTLED), {}, "Do not rely on this: the host was busy in 4 of 6 trials."),
        ((FEW,), {"interval": None}, "Provisional: too few trials for a 95 % interval."),
        ((), {"throughput": 90.0}, "Known only to ±11.6 %."),
    ],
    ids=["reliable", "note", "caution", "unreliable", "few", "wide"],
)
def test_a_verdict_is_one_sentence(doubts, changes, sentence):
    assert verdict_sentence(result_verdict(measured(*doubts, **changes))) == sentence


def test_the_verdict_on_a_run_counts_its_figures():
    results = [measured(), measured(BUSY), measured(THROTTLED)]
    assert verdict_sentence(run_verdict(results)) == (
        "Do not rely on 1 of 3 figures: the host was busy in 4 of 6 trials."
    )
    assert verdict_sentence(run_verdict(results[:1] * 2)) == (
        "All 2 figures are reliable to ±0.4 % or better."
    )
    assert translated(verdict_sentence(run_verdict(results[1:2] * 2)), "zh") == (
        "全部 2 项结果均不可依赖：主机繁忙（6 次试验中的 4 次）。"
    )


def test_many_reasons_are_counted_rather_than_listed():
    codes = (DoubtCode.LOSS_NOT_FALLING, DoubtCode.FAILED_TRIALS, DoubtCode.NOISY_TRIALS)
    values = {"before": 1, "after": 2, "steps": 3, "failed": 1, "n": 7, "spread": "5.2 %"}
    doubts = (*(doubt(code, **values) for code in codes), THROTTLED)
    assert verdict_sentence(result_verdict(measured(*doubts))).endswith("; and 1 more.")


def test_a_doubt_of_all_cases_names_none_of_them():
    (note,) = doubt_notes(cpu().results)
    assert note.sentences == (FEW.message,)


def test_rows_follow_the_series_from_few_devices_to_many():
    shown = label.cases(h200().results[::-1])
    assert [result.key.devices for _case, result in shown] == [1, 2, 4, 8, 1, 2, 4, 8]


def test_what_was_left_out_as_pauses_is_listed_in_both_languages():
    paused = replace(cpu().results[0], pauses=(Pauses("evaluation", 7, 3.344), Pauses("checkpoint", 2, 0.25)))
    assert source_sentences([paused])[-1] == (
        "In no step of the first trial: evaluation × 7, 3.34 s, checkpoint × 2, 0.25 s."
    )
    assert "评估 7 次，3.34 s、保存检查点 2 次" in translated(source_sentences([paused])[-1], "zh")
