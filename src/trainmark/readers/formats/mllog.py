"""MLPerf: `:::MLLOG {"namespace": "", "time_ms": 1592669278705, "key": "epoch_stop", "metadata": {…}, …}`.

A record may lack its event type, give the time as a float or the namespace as a number, and end a run at a
point in time: only the key, the value, the time and the metadata are looked at. A line of progress is one
interval of training: an epoch, or a block up to its evaluation where no epochs are marked.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

from trainmark.events import Scope
from trainmark.readers.format import Clock, Format, Kind, Rate, Setting

RECORD = re.compile(rb":::MLLOG +(\{[^\n]*)")
BEGIN = b"mllog: a run begins\n"
OPENING = frozenset({"submission_benchmark", "cache_clear", "init_start", "run_start"})
SETTINGS = frozenset(
    {
        "global_batch_size",
        "train_samples",
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


# No count or time of a run comes near it; JSON allows numbers that would not fit a double.
LARGEST = 1e15


class Progress:
    """What has been opened and counted so far in one run."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.opened: dict[str, tuple[float, dict[str, Any]]] = {}
        self.tracked = False
        self.accuracy: float | None = None

    def lines(self, key: str, value: Any, ms: float, metadata: dict[str, Any]) -> Iterator[bytes]:
        """Our lines for one record."""
        if key in SETTINGS and value is not None:
            self.facts.setdefault(key, value)
            yield _line(f"{key} = {value}")
        elif key in ("run_start", "block_start", "epoch_start"):
            self.opened[key] = ms, metadata
            if key == "epoch_start":
                self.opened.pop("block_start", None)
        elif key == "epoch_stop":
            yield from self._interval("epoch_start", 1, ms, metadata)
        elif key in ("eval_start", "block_stop"):
            yield from self._interval("block_start", None, ms, metadata)
        elif key == "eval_accuracy" and _is_number(value):
            self.accuracy = value
            yield _line(f"accuracy {value} epoch={_text(metadata.get('epoch_num'))}")
        elif key in ("tracked_stats", "throughput"):
            yield from self._tracked(value if isinstance(value, dict) else {"throughput": value})
        elif key == "run_stop":
            yield _line(f"status = {metadata.get('status')}")
            if "run_start" in self.opened:
                seconds = (ms - self.opened["run_start"][0]) / 1000
                yield _line(f"run of {seconds} s top1={_text(self.accuracy)}")

    def _interval(
        self, start: str, epochs: int | None, ms: float, metadata: dict[str, Any]
    ) -> Iterator[bytes]:
        began, opening = self.opened.pop(start, (None, {}))
        if began is None or ms <= began or self.tracked:
            return
        samples, batch = self._samples(epochs, opening, metadata), self.facts.get("global_batch_size")
        yield _row(
            wall=ms,
            epoch=opening.get("epoch_num", opening.get("first_epoch_num")),
            step=samples / batch if samples and _is_number(batch) and batch else None,
            samples=samples,
            rate=1000 * samples / (ms - began) if samples else None,
        )

    def _samples(self, epochs: int | None, opening: dict[str, Any], closing: dict[str, Any]) -> float | None:
        """Counted by the program where it counts samples, else whole epochs; None where neither is told."""
        if _is_number(opening.get("samples_count")) and _is_number(closing.get("samples_count")):
            return float(closing["samples_count"] - opening["samples_count"])
        epochs = opening.get("epoch_count") if epochs is None else epochs
        # BERT has no epochs; the rules let it count samples under that name.
        per_epoch = 1 if self.facts.get("submission_benchmark") == "bert" else self.facts.get("train_samples")
        return float(epochs) * per_epoch if _is_number(epochs) and _is_number(per_epoch) else None

    def _tracked(self, stats: dict[str, Any]) -> Iterator[bytes]:
        """A rate of the program's own; from then on its rows stand for the intervals.

        What it calls a step is a step in one benchmark and a sample in another, so it is not taken over.
        """
        if _is_number(stats.get("throughput")):
            self.tracked = True
            yield _row(rate=stats["throughput"], loss=stats.get("train_loss", stats.get("loss")))


def progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The records as lines of ours; what is no record, or a broken one, is left out."""
    run, ended = Progress(), False
    for block in blocks:
        written = []
        for key, value, ms, metadata in _records(block):
            if ended and key in OPENING:
                run, ended = Progress(), False
                written.append(BEGIN)
            written.extend(run.lines(key, value, ms, metadata))
            ended = ended or key == "run_stop"
        yield b"".join(written)


def _records(block: bytes) -> Iterator[tuple[str, Any, float, dict[str, Any]]]:
    decoder = json.JSONDecoder()
    for line in RECORD.findall(block):
        try:
            record, _ = decoder.raw_decode(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        key, ms, metadata = record.get("key"), record.get("time_ms"), record.get("metadata")
        if isinstance(key, str) and _is_number(ms):
            yield key, record.get("value"), float(ms), metadata if isinstance(metadata, dict) else {}


def _row(**figures: Any) -> bytes:
    names = ("wall", "epoch", "step", "samples", "rate", "loss")
    return _line(" ".join(f"{name}={_text(figures.get(name))}" for name in names))


def _line(text: str) -> bytes:
    """A value of theirs may hold line ends, which would part it or pass for lines of ours."""
    return b"mllog: " + " ".join(text.splitlines()).encode("utf-8", "replace") + b"\n"


def _text(value: Any) -> str:
    return str(value) if _is_number(value) else ""


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def _fact(name: str, key: bytes, convert: Any = int) -> Setting:
    return Setting(name, re.compile(rb"mllog: " + key + rb" = (?P<value>[^\n]+)"), convert=convert)


FORMAT = Format(
    name="mllog",
    title="MLPerf :::MLLOG",
    framework=None,
    sign=re.compile(rb":::MLLOG +\{[^\n]{0,200}\"key\": "),
    step=re.compile(
        rb"mllog: wall=(?P<wall>\S*) epoch=(?P<epoch>\S*) step=(?P<step>\S*) samples=(?P<samples>\S*) "
        rb"rate=(?P<rate>\S*) loss=(?P<loss>\S*)"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=Clock.UNIX_MS,
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
    ),
    start=re.compile(BEGIN),
    evaluation=re.compile(rb"mllog: accuracy (?P<top1>\S+) epoch=(?P<epoch>\S*)"),
    summary=re.compile(rb"mllog: run of (?P<seconds>\S+) s top1=(?P<top1>\S*)"),
    rewrite=progress,
)
