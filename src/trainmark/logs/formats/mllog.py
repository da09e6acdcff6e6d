"""MLPerf's records as lines of ours, run by run; a line of progress is one stretch of training."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trainmark.logs.formats.mllog_intervals import MllogRecord, TrainingInterval, intervals, is_number

LINE = re.compile(rb":::MLLOG +(\{[^\n]*)")
OPENING = frozenset({"submission_benchmark", "cache_clear", "init_start", "run_start"})
PROGRESS = frozenset({"epoch_stop", "block_stop", "eval_accuracy", "run_stop"})
BEGIN = b"mllog: a run begins\n"
SETTINGS = frozenset(
    {
        "global_batch_size",
        "train_samples",
        "samples_per_epoch",
        "max_sequence_length",
        "number_of_ranks",
        "number_of_nodes",
        "accelerators_per_node",
        "opt_base_learning_rate",
        "lars_opt_base_learning_rate",
        "sgd_opt_base_learning_rate",
        "lars_opt_momentum",
        "sgd_opt_momentum",
        "submission_platform",
        "submission_benchmark",
    }
)
# Single records come late, as where one process speaks for another; more than these is no order at all.
FEWEST_FALLS, MOST_FALLS_SHARE = 5, 0.1
LATE_MS = 1000.0
# So much longer without a record than with them is no run of training.
DAY_MS, SILENT_MULTIPLE = 86_400_000.0, 10.0


def progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The records as lines of ours, run by run."""
    for number, records in enumerate(runs(blocks)):
        yield b"".join([BEGIN] * (number > 0) + list(_lines(records)))


def _lines(written: Sequence[MllogRecord]) -> Iterator[bytes]:
    facts: dict[str, Any] = {}
    settings = []
    for record in written:
        if record.key in SETTINGS and record.value is not None:
            if record.key not in facts or facts[record.key] != record.value:
                settings.append(_line(f"{record.key} = {record.value}"))
            facts.setdefault(record.key, record.value)
    records = sorted(written, key=lambda record: record.ms)
    rows = intervals(records, facts)
    counted = len(rows) > 0 and all(row.samples for row in rows)
    # What is no count of samples does not become one by the batch.
    yield from (line for line in settings if counted or b"global_batch_size" not in line)
    yield from _rows(rows, facts, records)
    if not rows and any(record.key in ("epoch_stop", "block_stop", "eval_accuracy") for record in records):
        yield _row({})  # there was progress, if none that is counted
    accuracies = [record for record in records if record.key == "eval_accuracy" and is_number(record.value)]
    for record in accuracies:
        yield _line(f"accuracy {record.value} epoch={_text(record.metadata.get('epoch_num'))}")
    yield from _ending(written, accuracies[-1].value if accuracies else None)
    if (days := _silent_days(records)) is not None:
        yield _line(f"ended = its records go on {days:.0f} days later")
    if counted and len(rows) > 1:
        whole = 1000 * sum(row.samples or 0 for row in rows) / (rows[-1].end - rows[0].begin)
        yield _line(f"whole_rate = {whole}")
    falls = sum(after.ms < before.ms - LATE_MS for before, after in pairwise(written))
    benchmarks = {str(record.value) for record in written if record.key == "submission_benchmark"}
    if len(benchmarks) > 1 or (falls >= FEWEST_FALLS and falls > MOST_FALLS_SHARE * len(written)):
        yield _line("disordered = records")


def _rows(
    rows: Sequence[TrainingInterval], facts: dict[str, Any], records: Sequence[MllogRecord]
) -> Iterator[bytes]:
    batch = facts.get("global_batch_size")
    losses = [(record.ms, loss) for record in records if is_number(loss := _loss(record))]
    for number, row in enumerate(rows):
        place = bisect_right(losses, row.end, key=lambda entry: entry[0])
        figures = {
            "wall": row.end,
            "epoch": row.epoch if row.epoch is not None else number,
            "step": row.samples / batch if row.samples and is_number(batch) and batch > 0 else None,
            "samples": row.samples,
            "rate": row.samples / row.seconds if row.samples else None,
            "seconds": None if row.samples else row.seconds,
            "loss": losses[place - 1][1] if place else None,
        }
        yield _row(figures)


def _row(figures: Mapping[str, Any]) -> bytes:
    names = ("wall", "epoch", "step", "samples", "rate", "seconds", "loss")
    return _line(" ".join(f"{name}={_text(figures.get(name))}" for name in names))


def _loss(record: MllogRecord) -> Any:
    if record.key in ("train_loss", "loss"):
        return record.value
    stats = record.value if record.key == "tracked_stats" and isinstance(record.value, dict) else {}
    return next((stats[name] for name in ("train_loss", "reduced_train_loss", "loss") if name in stats), None)


def _ending(records: Sequence[MllogRecord], accuracy: float | None) -> Iterator[bytes]:
    starts = [record for record in records if record.key == "run_start"]
    stops = [record for record in records if record.key == "run_stop"]
    if not stops:
        yield _line("ended = without run_stop")
        return
    status = stops[0].metadata.get("status")
    yield _line(f"status = {status}")
    if status != "success":
        yield _line(f"ended = run_stop with status {status}")
    if starts:
        seconds = (stops[0].ms - starts[0].ms) / 1000
        yield _line(f"run of {seconds} s top1={_text(accuracy)}")


def _silent_days(records: Sequence[MllogRecord]) -> float | None:
    """The longest time without a record, where it parts what cannot be one run."""
    gaps = sorted(after.ms - before.ms for before, after in pairwise(records))
    if not gaps or gaps[-1] < max(DAY_MS, SILENT_MULTIPLE * sum(gaps[:-1])):
        return None
    return gaps[-1] / DAY_MS


def _line(text: str) -> bytes:
    """A value of theirs may hold line ends, which would part it or pass for lines of ours."""
    return b"mllog: " + " ".join(text.splitlines()).encode("utf-8", "replace") + b"\n"


def _text(value: Any) -> str:
    return str(value) if is_number(value) else ""


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
