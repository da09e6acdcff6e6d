"""What the published reports say fits a V100, as the ledger has it."""

from trainmark.pages.fit import published
from trainmark.workloads import registry
from trainmark.workloads.declaration import Axis, Workload

RESNET50 = registry.find("resnet50").workload

BERT = Workload(
    name="bert",
    title="BERT",
    unit="sequences",
    axes=(Axis("size", "base", "size"), Axis("length", 128, "length"), Axis("accumulate", 1, "accumulation")),
)


def batches(framework, precision, size=224, gigabytes=16):
    return {
        (each.title, each.framework): (each.batch, each.largest)
        for each in published(RESNET50, framework, precision, (("image_size", size),), gigabytes)
    }


def test_mindspore_says_that_128_is_the_most_in_fp32_and_256_in_mixed_precision():
    title = "DLPerf: MindSpore ResNet50 v1.5"
    assert batches("pytorch", "fp32")[title, "mindspore"] == (128, True)
    assert batches("pytorch", "amp")[title, "mindspore"] == (256, True)


def test_the_report_of_the_same_framework_comes_first():
    assert published(RESNET50, "pytorch", "amp", (("image_size", 224),), 16)[0].framework == "pytorch"


def test_oneflow_has_run_160_and_says_how_much_memory_that_took():
    (entry,) = [
        each
        for each in published(RESNET50, "pytorch", "fp32", (("image_size", 224),), 16)
        if "OneFlow" in each.title
    ]
    assert (entry.batch, entry.memory_mb) == (160, 15881)


def test_nothing_is_said_of_other_cards_and_other_images():
    assert batches("pytorch", "fp32", gigabytes=11) == batches("pytorch", "fp32", size=128) == {}


def test_a_transformer_is_looked_for_by_its_size_and_length_and_by_its_micro_batch():
    def largest(**axes):
        entries = published(BERT, "pytorch", "amp", tuple((BERT.defaults | axes).items()), 80)
        return [(entry.framework, entry.batch) for entry in entries]

    assert largest(size="large") == [("pytorch", 256)]
    assert largest(size="large", length=512) == [("pytorch", 32)]
    assert largest(size="huge") == largest(size="large", length=256) == []
