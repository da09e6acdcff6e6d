"""Transformers in the ledger: a run is compared with rows of its own size, length and unit."""

import pytest

from trainmark.base.errors import UserError
from trainmark.logs.ledger import find, load, load_for, load_of, standing
from trainmark.logs.ledger.entry import names_of, published_names
from trainmark.logs.ledger.load import DATA, parse
from trainmark.logs.ledger.standing import StandingDifference, comparable
from trainmark.measure.key import Key
from trainmark.pages.ledger import panels
from trainmark.pages.standing import standing_line

AXES = {"size": "124m", "length": 1024, "accumulate": 1, "sharding": "none", "recompute": "none"}
GPT2 = Key(
    workload="gpt2",
    framework="pytorch",
    framework_version="2.11",
    axes=tuple(AXES.items()),
    precision="bf16",
    compiler="compile",
    data="synthetic",
    batch_per_device=64,
    devices_per_node=8,
    device="NVIDIA H100 80GB HBM3",
)
BERT_AXES = {"size": "large", "length": 128, "accumulate": 1, "optimizer": "lamb", "sharding": "none"}
BERT = Key(
    workload="bert",
    framework="pytorch",
    axes=tuple(BERT_AXES.items()),
    precision="amp",
    loss_scale="dynamic",
    data="synthetic",
    batch_per_device=256,
    device="NVIDIA A100-SXM4-80GB",
)


def with_axes(key, **axes):
    return Key(**{**key.__dict__, "axes": tuple((dict(key.axes) | axes).items())})


def on(key, device, devices=1):
    return Key(**{**key.__dict__, "device": device, "devices_per_node": devices})


def test_gpt2_on_eight_h100_stands_beside_the_speedruns_first_record():
    placed = standing(GPT2, 4_000_000, load_for([GPT2]), "tokens/s")
    assert (placed.best.source, placed.best.row.throughput) == ("modded-nanogpt", 3744914)
    assert placed.ratio == pytest.approx(4_000_000 / 3744914)
    assert placed.differences == (
        StandingDifference("framework", "pytorch", "llm.c"),
        StandingDifference("data", "synthetic", "real"),
        StandingDifference("sharding", "none", "zero-1"),
    )
    assert placed.unstated == ("compiler",)


def test_what_neither_side_has_is_not_called_unstated_and_bf16_needs_no_loss_scale():
    placed = standing(GPT2, 1, load_for([GPT2]), "tokens/s")
    assert not {"layout", "loss_scale"} & set(placed.unstated)


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        (with_axes(GPT2, length=2048), "tokens/s"),
        (with_axes(GPT2, size="355m"), "tokens/s"),
        (GPT2, "sequences/s"),
        (GPT2, "images/s"),
    ],
    ids=["another length", "another size", "another unit", "no unit given"],
)
def test_another_length_size_or_unit_is_not_comparable(key, unit):
    assert comparable(GPT2, load(), "tokens/s")
    assert comparable(key, load(), unit) == []


def test_the_line_names_size_and_length_where_nothing_is_comparable():
    key = on(GPT2, "NVIDIA H200")
    line = standing_line(key, standing(key, 500_000, load(), "tokens/s"))
    assert "no gpt2-124m (length 1024) in bf16 on h200 in the ledger" in line


def test_one_name_of_torch_compile_is_not_a_difference_to_the_other():
    placed = standing(on(GPT2, "NVIDIA A100-SXM4-80GB"), 200_000, load(), "tokens/s")
    assert (placed.best.source, placed.best.row.compiler) == ("llms-from-scratch", "torch.compile")
    assert "compiler" not in {difference.field for difference in placed.differences}
    assert placed.ceiling.source == "llm.c"


def test_llama_8b_is_compared_with_llama_3_and_3_1_in_tokens_only():
    assert published_names("llama", "8b") == ("llama-8b", "llama3-8b", "llama3.1-8b")
    llama = with_axes(
        on(Key(**{**GPT2.__dict__, "workload": "llama"}), "NVIDIA H100", 8), size="8b", length=8192
    )
    placed = standing(llama, 60_000, load_for([llama]), "tokens/s")
    assert (placed.best.source, placed.best.row.throughput) == ("torchtitan", 53336)
    assert any(entry.row.unit == "sequences/s" for entry in load_for([llama]))


def test_bert_at_128_is_compared_and_at_512_only_with_rows_that_compute_their_padding():
    assert standing(BERT, 500, load_for([BERT]), "sequences/s").best.row.throughput == 694
    long = with_axes(BERT, length=512)
    rows = [entry.row for entry in comparable(long, load_for([long]), "sequences/s")]
    assert {row.framework for row in rows} == {"tensorflow"}
    skipped = [entry.row for entry in load() if entry.row.padding == "skipped"]
    assert skipped and {row.sequence_length for row in skipped} == {512}


def test_a_sequence_at_512_that_skips_padding_would_be_too_many_tokens():
    """Why such rows stand apart: as tokens they would be faster than the same model at length 128."""
    rows = find(load(), source="nvidia-dle-bert-pytorch", topology="1n1g", precision="amp", device="a100")
    tokens = {entry.row.sequence_length: entry.row.throughput * entry.row.sequence_length for entry in rows}
    assert tokens[512] > 1.4 * tokens[128]


def test_a_run_without_sizes_is_looked_for_by_its_name():
    assert names_of(Key("resnet50")) == ("resnet50",)
    assert load_for([GPT2, Key("resnet50")]) == load_of({"gpt2-124m", "resnet50"})


def test_size_and_length_are_asked_for_as_a_suite_has_them():
    entries = find(load(), workload="gpt2", size="124m", length="1024", unit="tokens/s", topology="1n8g")
    assert {entry.source for entry in entries} == {"llm.c", "modded-nanogpt", "nanogpt"}
    assert find(load(), workload="gpt2-124m") == find(load(), workload="gpt2", size="124m")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"workload": "gpt2"}, r"has gpt2 by its sizes; add --size 124m or 1558m or 355m or 774m\."),
        ({"workload": "gpt2", "size": "123m"}, r"no workload 'gpt2-123m'; did you mean 'gpt2-124m'\?"),
        ({"size": "124m"}, "a size is one of a workload; give --workload as well"),
        ({"length": "1025"}, r"no length '1025'; did you mean '1024'\?"),
        ({"unit": "token/s"}, r"no unit 'token/s'; did you mean 'tokens/s'\?"),
    ],
    ids=str,
)
def test_what_the_ledger_does_not_have_is_refused_in_one_sentence(wanted, sentence):
    with pytest.raises(UserError, match=sentence):
        find(load(), **wanted)


def test_a_plot_has_a_row_for_each_length():
    (panel,) = panels(find(load(), source="nvidia-dle-bert-tensorflow2", device="a100"))
    assert [label for label, _ in panel.rows] == [
        "a100 · amp · length 128",
        "a100 · amp · length 512",
        "a100 · tf32 · length 128",
        "a100 · tf32 · length 512",
    ]


def test_the_gpt3_script_of_llm_c_asks_for_more_than_an_a100_has():
    (entry,) = find(load(), source="llm.c", workload="gpt3-125m")
    layers, width, length, vocabulary = 12, 768, 2048, 50304
    matrices = 12 * layers * width * width + width * vocabulary
    flops_per_token = 6 * (matrices + layers * width * length)  # causal attention
    assert entry.row.per_device * flops_per_token > 312e12


def test_a_row_says_whether_padding_is_computed_or_skipped_and_nothing_else():
    text = (DATA / "nvidia-dle-bert-paddle.yaml").read_text(encoding="utf-8")
    with pytest.raises(UserError, match="'skiped' is no padding; did you mean 'skipped'"):
        parse(text.replace("padding: skipped", "padding: skiped", 1), "mine.yaml")


# The global batches that the pages print, by source and length.
GLOBAL_BATCHES = {
    ("nvidia-dle-bert-tensorflow1", 128): {65536},
    ("nvidia-dle-bert-tensorflow1", 512): {32768, 65536},
    ("nvidia-dle-bert-tensorflow2", 128): {61440, 65536, 79872, 90112},
    ("nvidia-dle-bert-tensorflow2", 512): {30720, 32768, 33792},
}


@pytest.mark.parametrize(("source", "length"), GLOBAL_BATCHES, ids=str)
def test_micro_batches_make_the_global_batch_of_their_page_or_an_erratum_says_otherwise(source, length):
    printed = GLOBAL_BATCHES[source, length]
    for entry in find(load(), source=source, length=str(length)):
        row = entry.row
        batch = row.batch_per_device * row.accumulate * row.devices
        assert batch in printed or entry.errata, (row.device, row.precision, row.topology, batch)
