"""MLPerf: `:::MLLOG {"namespace": "", "time_ms": 1592669278705, "key": "epoch_stop", "metadata": {…}, …}`.

A line of progress is one stretch of training: an epoch, a block, or what lies between two evaluations. Rates
that the program prints of itself are not used: they are of one device in one benchmark, of all in another,
and of epochs in a third.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat
from trainmark.logs.formats._mllog_intervals import TrainingInterval, intervals
from trainmark.logs.formats._mllog_records import MllogRecord, is_number, runs

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


def _fact(name: str, key: bytes, convert: Any = int) -> Setting:
    return Setting(name, re.compile(rb"mllog: " + key + rb" = (?P<value>[^\n]+)"), convert=convert)


FORMAT = Format(
    name="mllog",
    title="MLPerf :::MLLOG",
    framework=None,
    sign=re.compile(rb":::MLLOG +\{[^\n]{0,200}\"key\": "),
    step=re.compile(
        rb"mllog: wall=(?P<wall>\S*) epoch=(?P<epoch>\S*) step=(?P<step>\S*) samples=(?P<samples>\S*) "
        rb"rate=(?P<rate>\S*) seconds=(?P<seconds>\S*) loss=(?P<loss>\S*)"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.UNIX_MS,
    settings=(
        _fact("global_batch", rb"global_batch_size"),
        _fact("train_samples", rb"train_samples"),
        _fact("world_size", rb"number_of_ranks"),
        _fact("nodes", rb"number_of_nodes"),
        _fact("devices_per_node", rb"accelerators_per_node"),
        _fact("learning_rate", rb"(?:lars_|sgd_)?opt_base_learning_rate", float),
        _fact("momentum", rb"(?:lars|sgd)_opt_momentum", float),
        _fact("platform", rb"submission_platform", str),
        _fact("benchmark", rb"submission_benchmark", str),
        _fact("status", rb"status", str),
        _fact("ended", rb"ended", str),
        _fact("whole_rate", rb"whole_rate", float),
        _fact("disordered", rb"disordered", str),
    ),
    start=re.compile(BEGIN),
    evaluation=re.compile(rb"mllog: accuracy (?P<top1>\S+) epoch=(?P<epoch>\S*)"),
    summary=re.compile(rb"mllog: run of (?P<seconds>\S+) s top1=(?P<top1>\S*)"),
    rewrite=progress,
    precedence=1,
)
