"""Runs listed as rows, and what sentences say of memory, of epochs and of a step, against the tables."""

import pytest
from report_texts import RUN_ROWS, codes, findings, planted

ALONE = "# Speed of the 7B model\n\n| {head} | tokens/s |\n|---|---|\n{rows}"
RUNS = "| {0}1 | 19,512 |\n| {0}2 | 19,844 |\n| {0}3 | 19,700 |\n"


@pytest.mark.parametrize(
    ("right", "wrong", "code", "line"),
    [
        ("| average | 19,685 |", "| average | 19,980 |", "average-mismatch", 20),
        ("| average | 19,685 |", "| median | 19,685 |", "median-mismatch", 20),
        ("the mean of 3 runs", "the mean of 5 runs", "repeats-mismatch", 17),
        ("in use was 73 GB", "in use was 96 GB", "past-physical-limit", 23),
        ("in use was 73 GB of 80 GB", "in use was 96 GB", "past-physical-limit", 23),
        ("19,712 | 73 |", "19,712 | 96 |", "past-physical-limit", 11),
        ("took 98 minutes", "took 50 minutes", "time-throughput-mismatch", 22),
        (
            "One epoch takes 65 s at 8 GPUs; 90 epochs took 98",
            "90 epochs took 50",
            "time-throughput-mismatch",
            22,
        ),
        ("19,712 | 73 | 1.65 |", "19,712 | 73 | 0.83 |", "time-throughput-mismatch", 11),
        ("Step time is 104 ms", "Step time is 83 ms", "step-time-mismatch", 24),
        ("Step time is 104 ms at 8 GPUs", "At 8 GPUs we saw 83 ms a step", "step-time-mismatch", 24),
    ],
)
def test_one_planted_contradiction_is_found_in_its_place_and_nothing_else_is(right, wrong, code, line):
    found = findings(planted(RUN_ROWS, right, wrong))
    assert [(finding.code, int(finding.where.rpartition(":")[2])) for finding in found] == [(code, line)]


@pytest.mark.parametrize("name", ["mean", "average", "Avg."])
@pytest.mark.parametrize(("head", "word"), [("run", ""), ("Trial", ""), ("", "run "), ("seed", "")])
def test_an_average_of_rows_is_checked_in_a_table_alone(head, word, name):
    rows = RUNS.format(word)
    assert "average-mismatch" in codes(ALONE.format(head=head, rows=rows + f"| {name} | 19,980 |\n"))
    assert "average-mismatch" not in codes(ALONE.format(head=head, rows=rows + f"| {name} | 19,685 |\n"))
    assert "average-mismatch" not in codes(ALONE.format(head=head, rows=rows + f"| {name} (of 9) | n/a |\n"))


def test_rows_that_count_devices_are_no_runs():
    assert "average-mismatch" not in codes(ALONE.format(head="GPUs", rows=RUNS.format("") + "| mean | 9 |\n"))


@pytest.mark.parametrize(
    "sentence",
    [
        "The host memory in use was 196 GB.",
        "All GPUs together used 410 GB of memory.",
        "Without checkpointing the GPU memory used would be 96 GB, which does not fit.",
        "8 x 80 GB of GPU memory are used.",
        "The GPU memory used was 73 GB.",
        "One epoch takes 65 s; the first 5 epochs took 330 s.",
        "90 epochs took 3 hours with evaluation.",
        "MLPerf requires 41 epochs in 10 minutes.",
        "The step time was 83 ms before this change.",
        "The forward pass takes 31 ms a step.",
        "Step time is 104 ms.",
        "The step time is 404 ms at 16 GPUs.",
        "A step time of 101 ms was seen on 1 GPU.",
    ],
)
def test_a_sentence_that_contradicts_nothing_is_silent(sentence):
    text = planted(RUN_ROWS, "Each epoch of 1,281,167 images ends with a validation.", sentence)
    text = planted(text, "One epoch takes 65 s at 8 GPUs; 90 epochs took 98 minutes.", "It went well.")
    assert findings(text) == []
