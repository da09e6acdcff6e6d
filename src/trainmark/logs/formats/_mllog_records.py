"""MLPerf's records, the runs that a file of them holds, and what a count in them counts.

The rules and the submitters differ by benchmark: `epoch_num` counts epochs of an image set, samples of
BERT, tokens of GPT-3 and fractions of DLRM's one epoch; `train_samples` is an epoch in samples, in batches,
or the most samples that the run might take.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeGuard

LINE = re.compile(rb":::MLLOG +(\{[^\n]*)")
OPENING = frozenset({"submission_benchmark", "cache_clear", "init_start", "run_start"})
PROGRESS = frozenset({"epoch_stop", "block_stop", "eval_accuracy", "run_stop"})
# No count or time of a run comes near it; JSON allows numbers that would not fit a double.
LARGEST = 1e15


class MllogRecord(NamedTuple):
    """One `:::MLLOG` line; the event type is not looked at, since it is missing or wrong in many logs."""

    key: str
    value: Any
    ms: float
    metadata: dict[str, Any]

    def number(self, name: str) -> float | None:
        """A number of the metadata, None where there is none of this name."""
        value = self.metadata.get(name)
        return float(value) if is_number(value) else None


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def records(block: bytes) -> Iterator[MllogRecord]:
    """Every whole record of a block; what is none, or a broken one, is left out."""
    decoder = json.JSONDecoder()
    for line in LINE.findall(block):
        try:
            fields, _ = decoder.raw_decode(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        key, ms, metadata = fields.get("key"), fields.get("time_ms"), fields.get("metadata")
        if isinstance(key, str) and is_number(ms):
            yield MllogRecord(
                key, fields.get("value"), float(ms), metadata if isinstance(metadata, dict) else {}
            )


def runs(blocks: Iterable[bytes]) -> Iterator[list[MllogRecord]]:
    """The records run by run; a run begins where another `run_start` comes after progress was made.

    Records that come late, such as a submission's name after `run_stop`, belong to the run before them.
    """
    run: list[MllogRecord] = []
    started = progressed = False
    for block in blocks:
        for record in records(block):
            if record.key == "run_start":
                if started and progressed:
                    cut = _opening(run)
                    yield run[:cut]
                    run, progressed = run[cut:], False
                started = True
            progressed = progressed or (started and record.key in PROGRESS)
            run.append(record)
    if run:
        yield run


def _opening(run: list[MllogRecord]) -> int:
    """Where the records of the run that now starts begin: the first opening one after the last progress."""
    last = max(index for index, record in enumerate(run) if record.key in PROGRESS)
    return next((i for i in range(last + 1, len(run)) if run[i].key in OPENING), len(run))


class EpochUnit(Enum):
    """The unit of `epoch_num`."""

    EPOCHS = "epochs"
    SHARES = "shares"  # of one epoch that no run finishes
    SAMPLES = "samples"
    TOKENS = "tokens"


UNITS = {
    "resnet": EpochUnit.EPOCHS,
    "ssd": EpochUnit.EPOCHS,
    "retinanet": EpochUnit.EPOCHS,
    "maskrcnn": EpochUnit.EPOCHS,
    "rnnt": EpochUnit.EPOCHS,
    "unet3d": EpochUnit.EPOCHS,
    "transformer": EpochUnit.EPOCHS,
    "gnmt": EpochUnit.EPOCHS,
    "dlrm": EpochUnit.SHARES,
    "dlrm_dcnv2": EpochUnit.SHARES,
    "gnn": EpochUnit.SHARES,
    "rgat": EpochUnit.SHARES,
    "bert": EpochUnit.SAMPLES,
    "gpt3": EpochUnit.TOKENS,
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


def unit_of(facts: Mapping[str, Any], largest: float) -> EpochUnit | None:
    """What `epoch_num` counts in a run where it rises to `largest`; None where that cannot be told."""
    unit = UNITS.get(str(facts.get("submission_benchmark")))
    if unit is EpochUnit.EPOCHS and largest > MOST_EPOCHS:
        return EpochUnit.SAMPLES
    if unit in (EpochUnit.SAMPLES, EpochUnit.TOKENS) and largest <= MOST_EPOCHS:
        return None
    return unit


def samples_of_one(unit: EpochUnit, facts: Mapping[str, Any]) -> float | None:
    """Samples of one such unit; None where the log and the rules do not tell."""
    if unit is EpochUnit.SAMPLES:
        return 1.0
    if unit is EpochUnit.TOKENS:
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
        if any(_same_size(train_samples, size) for size in sizes):
            return float(train_samples)
        if is_number(batch):
            for size in sizes:
                if _same_size(train_samples * batch, size):
                    return float(size)
    # Where the set has had one size only, a count of something else does not matter.
    return float(sizes[0]) if len(sizes) == 1 else None


def _same_size(one: float, other: float) -> bool:
    return abs(one / other - 1) <= SAME_SIZE
