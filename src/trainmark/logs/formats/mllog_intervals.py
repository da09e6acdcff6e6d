"""Stretches of training in an MLPerf run: how long each took, and how many samples it counted.

A count is taken from the difference of two consecutive records of one kind, never from what a record says of
the stretch that it opens. Evaluation that training waits for does not count.
The rules and the submitters differ by benchmark: `epoch_num` counts epochs of an image set, samples of
BERT, tokens of GPT-3 and fractions of DLRM's one epoch; `train_samples` is an epoch in samples, in batches,
or the most samples that the run might take.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple, TypeGuard

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


# Kinds of records that count, the finest first: what they say is true of the moment they are written.
COUNTING = ("tracked_stats", "train_loss", "block_stop", "eval_start", "eval_accuracy")
# A first stretch this much longer than the others does not begin at zero.
FIRST_EXCESS = 1.05
# Records this close to the end of the run are written with it.
SAME_MOMENT_MS, SAME_MOMENT_SHARE = 1000.0, 0.01
# Epochs are measured by their own records where these leave no more out than data sets that are opened again.
COVERED_SHARE = 0.7

Stretches = Sequence[tuple[float, float]]


class TrainingInterval(NamedTuple):
    """From `begin` to `end`, in milliseconds; `seconds` is less where an evaluation lies between."""

    begin: float
    end: float
    seconds: float
    samples: float | None
    epoch: float | None = None


class CountMark(NamedTuple):
    """What had been counted by then."""

    ms: float
    total: float


def intervals(records: Sequence[MllogRecord], facts: Mapping[str, Any]) -> list[TrainingInterval]:
    """The stretches of one run, by the best that its records count by; records are in order of time."""
    evaluations = _evaluations(records)
    begun = next((record.ms for record in records if record.key == "run_start"), None)
    ended = next((record.ms for record in records if record.key == "run_stop"), None)
    stretches = _between(_counted(records, "samples_count"), 1.0, begun, records, evaluations)
    if stretches:
        return stretches
    if UNITS.get(str(facts.get("submission_benchmark"))) is EpochUnit.EPOCHS:
        epochs = _epochs(records, facts, begun, ended, evaluations)
        stretches = epochs if _cover(epochs, evaluations) else _blocks(records, facts, evaluations) or epochs
        if stretches:
            return stretches
    marks = _counted(records, "epoch_num")
    unit = unit_of(facts, max((mark.total for mark in marks), default=0))
    size = samples_of_one(unit, facts) if unit is not None else None
    stretches = _between(marks, size, begun, records, evaluations) if size is not None else []
    if stretches:
        return stretches
    batch = facts.get("global_batch_size")
    if unit is None and is_number(batch):
        stretches = _between(_counted(records, "step_num"), batch, begun, records, evaluations)
    return stretches or _uncounted(records, facts, evaluations)


def _counted(records: Sequence[MllogRecord], name: str) -> list[CountMark]:
    """The rising counts under this name in the kind of record that has most of them."""
    best: list[CountMark] = []
    for key in COUNTING:
        marks: list[CountMark] = []
        for record in records:
            count = record.number(name)
            if record.key != key or count is None or not _trains(record):
                continue
            if not marks or count > marks[-1].total:
                marks.append(CountMark(record.ms, count))
        if len(marks) > len(best):
            best = marks
    return best


def _trains(record: MllogRecord) -> bool:
    """Whether a block is one of training; some logs mark those of evaluation too, and name both."""
    return not isinstance(record.value, str) or ("valid" not in record.value and "eval" not in record.value)


def _between(
    marks: Sequence[CountMark],
    size: float,
    begun: float | None,
    records: Sequence[MllogRecord],
    evaluations: Stretches,
) -> list[TrainingInterval]:
    """From mark to mark, and from the start of the run where its first stretch is like the others."""
    stretches = [_interval(one, other, size, evaluations) for one, other in pairwise(marks)]
    if begun is not None and marks and marks[0].ms > begun and marks[0].total > 0:
        longest = max((interval.samples or 0 for interval in stretches), default=None)
        if longest is None or marks[0].total * size <= FIRST_EXCESS * longest:
            stretches.insert(0, _interval(CountMark(begun, 0.0), marks[0], size, evaluations))
    stretches = [interval for interval in stretches if interval.seconds > 0]
    if not evaluations:
        evaluated = [record.ms for record in records if record.key == "eval_accuracy"]
        clean = [
            interval for interval in stretches if not _any_within(evaluated, interval.begin, interval.end - 1)
        ]
        # An evaluation whose length is not told lies in some of them; the others are training alone.
        if len(clean) > 1:
            return clean
    return stretches


def _interval(one: CountMark, other: CountMark, size: float, evaluations: Stretches) -> TrainingInterval:
    seconds = (other.ms - one.ms - _overlap(one.ms, other.ms, evaluations)) / 1000
    return TrainingInterval(one.ms, other.ms, seconds, (other.total - one.total) * size)


def _epochs(
    records: Sequence[MllogRecord],
    facts: Mapping[str, Any],
    begun: float | None,
    ended: float | None,
    evaluations: Stretches,
) -> list[TrainingInterval]:
    """Whole epochs, from `epoch_start` to the `epoch_stop` of the same number."""
    size = epoch_samples(facts)
    stretches = list(_pairs(records, "epoch_start", "epoch_stop", "epoch_num", evaluations, size))
    if ended is not None and begun is not None:
        # An epoch that ends with the run, and is not evaluated, may have been broken off by it.
        close = max(SAME_MOMENT_MS, SAME_MOMENT_SHARE * (ended - begun))
        evaluated = max((record.ms for record in records if record.key == "eval_start"), default=begun)
        latest = max(evaluated, ended - close)
        stretches = [interval for interval in stretches if interval.end <= latest] or stretches
    return stretches if size is not None else []


def _cover(epochs: Sequence[TrainingInterval], evaluations: Stretches) -> bool:
    """Whether the epochs take up the time that they lie in.

    Where steps are only handed over to the devices between `epoch_start` and `epoch_stop`, most of the time
    passes after it.
    """
    if not epochs:
        return False
    begin, end = epochs[0].begin, epochs[-1].end
    waited = (end - begin - _overlap(begin, end, evaluations)) / 1000
    return sum(interval.seconds for interval in epochs) >= COVERED_SHARE * waited


def _pairs(
    records: Sequence[MllogRecord],
    start: str,
    stop: str,
    name: str,
    evaluations: Stretches,
    samples: float | None,
) -> Iterator[TrainingInterval]:
    """From the first start to the last stop of each number; every rank may write both."""
    opened: dict[float | None, float] = {}
    closed: dict[float | None, float] = {}
    for record in records:
        number = record.number(name)
        if record.key == start:
            opened.setdefault(number, record.ms)
        elif record.key == stop and number in opened:
            closed[number] = record.ms
    for number, end in closed.items():
        begin = opened[number]
        seconds = (end - begin - _overlap(begin, end, evaluations)) / 1000
        if seconds > 0:
            yield TrainingInterval(begin, end, seconds, samples, number)


def _blocks(
    records: Sequence[MllogRecord], facts: Mapping[str, Any], evaluations: Stretches
) -> list[TrainingInterval]:
    """Blocks of epochs: each is as long as the next one's first epoch is further on."""
    blocks = list(_pairs(records, "block_start", "block_stop", "first_epoch_num", evaluations, None))
    numbers = [block.epoch for block in blocks if block.epoch is not None]
    unit = unit_of(facts, max(numbers, default=0))
    size = samples_of_one(unit, facts) if unit is not None else None
    if size is None or len(numbers) < len(blocks):
        return []
    counted = [
        block._replace(samples=(after.epoch - block.epoch) * size)
        for block, after in pairwise(blocks)
        if block.epoch is not None and after.epoch is not None and after.epoch > block.epoch
    ]
    if not counted and len(blocks) == 1:
        opening = next(record for record in records if record.key == "block_start")
        count = opening.number("epoch_count")
        return [blocks[0]._replace(samples=count * size)] if count else []
    return counted


def _uncounted(
    records: Sequence[MllogRecord], facts: Mapping[str, Any], evaluations: Stretches
) -> list[TrainingInterval]:
    """Times alone, of what the program calls an epoch; only where an epoch is no count of samples."""
    if UNITS.get(str(facts.get("submission_benchmark"))) is not None:
        return []
    return list(_pairs(records, "epoch_start", "epoch_stop", "epoch_num", evaluations, None))


def _evaluations(records: Sequence[MllogRecord]) -> Stretches:
    """Evaluations that training waits for, begin and end; none where it goes on beside them."""
    ends: dict[str, dict[float | None, list[float]]] = {"eval_stop": {}, "eval_accuracy": {}}
    begins: dict[float | None, float] = {}
    for record in records:
        if record.key in ends:
            ends[record.key].setdefault(_number(record), []).append(record.ms)
        elif record.key == "eval_start":
            begins.setdefault(_number(record), record.ms)
    if not any(ends.values()):
        # No evaluation says when it ended: the block that it belongs to does.
        blocks = [record.ms for record in records if record.key == "block_stop"]
        ends["block_stop"] = dict.fromkeys(begins, blocks)
    waited_for = []
    for number, begin in begins.items():
        for kind in ends.values():
            later = [ms for ms in kind.get(number, ()) if ms > begin]
            if later:
                waited_for.append((begin, later[0]))
                break
    waited_for.sort()
    starts = [record.ms for record in records if record.key in ("block_start", "epoch_start")]
    beside = sum(
        _any_within(starts, begin - (end - begin) / 10, (begin + end) / 2) for begin, end in waited_for
    )
    return [] if 2 * beside > len(waited_for) else waited_for


def _number(record: MllogRecord) -> float | None:
    numbers = (record.number(name) for name in ("samples_count", "epoch_num", "epoch_count"))
    return next((number for number in numbers if number is not None), None)


def _overlap(begin: float, end: float, stretches: Stretches) -> float:
    """How much of the time from `begin` to `end` these stretches take, which are in order."""
    taken = 0.0
    for start, stop in stretches[max(0, bisect_left(stretches, (begin, begin)) - 1) :]:
        if start >= end:
            break
        taken += max(0.0, min(end, stop) - max(begin, start))
    return taken


def _any_within(times: Sequence[float], begin: float, end: float) -> bool:
    place = bisect_left(times, begin)
    return place < len(times) and times[place] <= end
