"""Language models: tokens, operations and utilisation recomputed under each convention."""

import pytest
from report_texts import codes, findings, planted

# A dense model of 6.66e9 parameters, 32 layers of 4096; 4096 tokens; 10,119 tokens/s a device on H100.
FULL = """\
# Training benchmarks, H100 80GB, BF16

| Model | SeqLen (T) | # GPUs | GPU | MFU | Model TFLOP \
| MicroBatchSize | GradAccum | GlobalBatchSize | Throughput (S/s) \
| Throughput (T/s) | Throughput (T/s/GPU) | GlobalBatchSize (T) | NumParams |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| 7b | 2048 | 256 | h100_80gb | 44.15 | 436 | 6 | 1 | 1536 | 1264 | 2590548 | 10119 | 3145728 | 6658859008 |
| 7b | 2048 | 128 | h100_80gb | 44.99 | 445 | 6 | 1 | 768 | 644 | 1319936 | 10312 | 1572864 | 6658859008 |
| 7b | 2048 | 64 | h100_80gb | 45.60 | 451 | 6 | 1 | 384 | 326 | 668928 | 10452 | 786432 | 6658859008 |
"""
SHORT = """\
# Llama 3.1 8B on H100

| Model | GPUs | Sequence length | tokens/s/GPU | MFU |
|---|---|---|---|---|
| Llama 3.1 8B | 8 | 8192 | 6667 | 39% |
"""
PARALLEL = """\
| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | GA |
|---|---|---|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | 32 |
| LLAMA3-70B | 64 | 128 | 1 | 8192 | 4 | 8 | 1 | 64 |
"""
CHIPS = """\
# Models on TPU v4

| Hardware | TFLOP/sec/chip | MFU |
|---|---|---|
| 1x v4-128 | 156 | 56.7% |
| 2x v4-128 | 152 | 55.2% |
"""
EIGHT_BITS = SHORT.replace("BF16", "").replace("| MFU |", "| MFU (FP8) |").replace("39%", "20%")


@pytest.mark.parametrize("text", [FULL, SHORT, PARALLEL, CHIPS, EIGHT_BITS])
def test_a_consistent_report_is_silent(text):
    assert codes(text) == []


@pytest.mark.parametrize(
    ("text", "right", "wrong", "code", "derived"),
    [
        (FULL, "| 44.15 |", "| 22.08 |", "sparse-peak", "about 44.1%"),
        (FULL, "| 44.15 |", "| 54.15 |", "mfu-mismatch", "44.1%"),
        (FULL, "| 44.15 | 436 |", "| 104.15 | 436 |", "past-physical-limit", "at most 100 %"),
        (FULL, "| 2590548 |", "| 2950548 |", "product-mismatch", "2.59046e+06"),
        (FULL, "| 3145728 |", "| 3415728 |", "product-mismatch", "3.14573e+06"),
        (FULL, "| 1536 |", "| 1563 |", "product-mismatch", None),
        (SHORT, "39%", "19.5%", "sparse-peak", None),
        (SHORT, "| 6667 | 39%", "| 833 | 39%", "mfu-mismatch", None),
        (SHORT, "| 6667 | 39%", "| 4000 | 79%", "mfu-mismatch", None),
        (PARALLEL, "| 8 | 1 | 64 |", "| 8 | 1 | 32 |", "product-mismatch", "64"),
        (CHIPS, "55.2%", "65.2%", "mfu-mismatch", "55.3%"),
    ],
)
def test_a_figure_that_fits_no_convention_is_named(text, right, wrong, code, derived):
    report_findings = findings(planted(text, right, wrong))
    assert {finding.code for finding in report_findings} == {code}
    assert derived in (None, report_findings[0].derived)


def test_tokens_of_all_devices_over_the_peak_of_one_are_recognised():
    (finding,) = findings(planted(SHORT, "| 6667 | 39%", "| 833 | 39%"))
    assert "all 8 devices" in finding.message


def test_operations_that_hold_only_with_recomputation_say_so():
    table = (
        "| Model | GPUs | Sequence length | tokens/s/GPU | TFLOP/s/GPU | Parameters |\n"
        "|---|---|---|---|---|---|\n"
        "| dense | 8 | 1024 | 10000 | {} | 7000000000 |\n"
    )
    assert codes(table.format(430)) == []
    (note,) = findings(table.format(590))
    assert (note.code, note.severity.value, note.derived) == (
        "unusual-convention", "note", "8 N, with recomputation"
    )  # fmt: skip
    assert codes(table.format(1620)) == ["flops-mismatch"]


def test_a_mixture_of_experts_is_not_counted_by_its_parameters():
    assert codes(SHORT.replace("Llama 3.1 8B |", "Mixtral-8x7B |").replace("39%", "12%")) == []


def test_fewer_operations_than_parameters_are_of_experts_unless_the_model_is_dense():
    table = (
        "| Model | GPUs | tokens/s/GPU | TFLOP/s/GPU |\n|---|---|---|---|\n| {} 120B | 64 | 16000 | 520 |\n"
    )
    assert codes(table.format("Unheard-of")) == []
    assert codes(table.format("Llama")) == ["flops-mismatch"]


def test_a_rate_of_four_bits_has_no_known_limit():
    table = "| Device | Precision | Model TFLOP / sec / GPU |\n|---|---|---|\n| GB200 | {} | 5944 |\n"
    assert codes(table.format("NVFP4")) == []
    assert codes(table.format("FP8")) == codes(table.format("BF16")) == ["past-physical-limit"]


def test_a_device_that_is_not_known_has_no_peak():
    assert (
        codes(SHORT.replace("Llama 3.1 8B | 8 |", "Llama 3.1 8B on DGX-GB300 | 8 |").replace("39%", "12%"))
        == []
    )


def test_a_sentence_with_operations_and_utilisation_takes_the_dense_peak():
    text = "On H100 we reach {} TFLOP/s per GPU, {} % MFU.\n"
    assert codes(text.format(430, "43.5")) == []
    assert codes(text.format(396, "20.0")) == ["sparse-peak"]
    assert codes("An A100 has 312 TFLOPS, and a tuned framework reaches 50 % MFU.\n") == []
    assert codes(text.format(396, "50.0")) == ["mfu-mismatch"]


REVERSED = """\
Training achieves {} MFU ({} torch.compile, respectively).

| Techniques | TPS/GPU |
|---|---|
| FSDP | 5,762 |
| FSDP + torch.compile | 6,667 |
"""


@pytest.mark.parametrize(
    ("figures", "order", "expected"),
    [
        ("33% to 39%", "without or with", []),
        ("39% and 33%", "with and without", []),
        ("33% to 39%", "with or without", ["text-against-table"]),
        ("39% and 33%", "without and with", ["text-against-table"]),
    ],
)
def test_a_sentence_that_reverses_its_table_is_named(figures, order, expected):
    assert codes(REVERSED.format(figures, order)) == expected
