"""What a count in MLPerf's records counts: the rules and the submitters differ by benchmark.

`epoch_num` counts epochs of an image set, samples of BERT, tokens of GPT-3 and fractions of DLRM's one epoch;
`train_samples` is an epoch in samples, in batches, or the most samples that the run might take.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from trainmark.published.readers.formats._mllog_records import is_number


class Counted(Enum):
    """The unit of `epoch_num`."""

    EPOCHS = "epochs"
    SHARES = "shares"  # of one epoch that no run finishes
    SAMPLES = "samples"
    TOKENS = "tokens"


UNITS = {
    "resnet": Counted.EPOCHS,
    "ssd": Counted.EPOCHS,
    "retinanet": Counted.EPOCHS,
    "maskrcnn": Counted.EPOCHS,
    "rnnt": Counted.EPOCHS,
    "unet3d": Counted.EPOCHS,
    "transformer": Counted.EPOCHS,
    "gnmt": Counted.EPOCHS,
    "dlrm": Counted.SHARES,
    "dlrm_dcnv2": Counted.SHARES,
    "gnn": Counted.SHARES,
    "rgat": Counted.SHARES,
    "bert": Counted.SAMPLES,
    "gpt3": Counted.TOKENS,
}
# Samples of an epoch by the rules, for benchmarks whose `train_samples` is often something else: batches of
# COCO or Open Images, the part of Criteo's clicks that a run takes.
EPOCH_SAMPLES: dict[str, tuple[int, ...]] = {
    "ssd": (117_266, 1_170_301),
    "retinanet": (1_170_301,),
    "maskrcnn": (117_266,),
    "dlrm": (4_195_197_692,),
    "dlrm_dcnv2": (4_195_197_692,),
}
# An image set padded to whole batches differs from its size by less.
SAME_SIZE = 0.02
# U-Net's recipe ends after so many epochs; more can only be samples.
MOST_EPOCHS = 10_000


def unit_of(facts: Mapping[str, Any], largest: float) -> Counted | None:
    """What `epoch_num` counts in a run where it rises to `largest`; None where that cannot be told."""
    unit = UNITS.get(str(facts.get("submission_benchmark")))
    if unit is Counted.EPOCHS and largest > MOST_EPOCHS:
        return Counted.SAMPLES
    if unit in (Counted.SAMPLES, Counted.TOKENS) and largest <= MOST_EPOCHS:
        return None
    return unit


def samples_of_one(unit: Counted, facts: Mapping[str, Any]) -> float | None:
    """Samples of one such unit; None where the log and the rules do not tell."""
    if unit is Counted.SAMPLES:
        return 1.0
    if unit is Counted.TOKENS:
        length = facts.get("max_sequence_length")
        return 1 / length if is_number(length) and length > 0 else None
    return epoch_samples(facts)


def epoch_samples(facts: Mapping[str, Any]) -> float | None:
    """Samples of an epoch, by what the log says where the rules bear it out."""
    per_epoch = facts.get("samples_per_epoch")
    if is_number(per_epoch) and per_epoch > 0:
        return float(per_epoch)
    train_samples, batch = facts.get("train_samples"), facts.get("global_batch_size")
    sizes = EPOCH_SAMPLES.get(str(facts.get("submission_benchmark")), ())
    if not sizes:
        return float(train_samples) if is_number(train_samples) and train_samples > 0 else None
    if is_number(train_samples):
        if any(_same(train_samples, size) for size in sizes):
            return float(train_samples)
        if is_number(batch):
            for size in sizes:
                if _same(train_samples * batch, size):
                    return float(size)
    # Where the set has had one size only, a count of something else does not matter.
    return float(sizes[0]) if len(sizes) == 1 else None


def _same(one: float, other: float) -> bool:
    return abs(one / other - 1) <= SAME_SIZE
