"""`trainmark data`: index, verify and unpack datasets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.main import LateCommand, LateCommands
from trainmark.cli.options import json_option
from trainmark.cli.progress import Progress
from trainmark.cli.terminal import print_json

if TYPE_CHECKING:
    from trainmark.data.imagenet import UnpackedImageNet
    from trainmark.data.verify import SetVerdict


COMMANDS = {
    "make": LateCommand("data.command_make", "Make a set of pictures or tokens to train on."),
    "imagenet": LateCommand("data.command", "Unpack ImageNet's two tars into class folders."),
    "convert": LateCommand("data.command_make", "Write a set in another format."),
    "verify": LateCommand("data.command", "Compare every file of a set with its checksum."),
    "index": LateCommand("data.command", "Index a set that somebody else made."),
    "bench": LateCommand("data.command_bench", "Time every installed loader on the same files."),
}


@click.group("data", cls=LateCommands, late=COMMANDS)
def data_command() -> None:
    """Make, unpack, convert and check sets of images and tokens, and measure how fast they are read.

    \b
    Examples:
      trainmark data make pictures --classes 10 --images 2000
      trainmark data convert pictures pictures-rec --to rec
      trainmark data verify pictures-rec
      trainmark data make corpus --tokens 2000000 --vocabulary 512
    """


def tell(record: Mapping[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        click.echo(text)


def splits_text(splits: Mapping[str, int]) -> str:
    return " and ".join(f"{count:,} {split}" for split, count in splits.items())


workers_option = click.option(
    "--workers", type=click.IntRange(min=1), help="Processes.  [default: one a processor]"
)


@click.command("index")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--labels-from",
    type=click.IntRange(0, 1),
    help="What the labels in the records count from.  [default: 1 in tfrecord, 0 elsewhere]",
)
@workers_option
@json_option
def index_command(path: Path, labels_from: int | None, workers: int | None, as_json: bool) -> int:
    """Find the records of a set that somebody else made, and write its index and checksums beside it.

    PATH holds RecordIO, TFRecord, OFRecord or tar files, class folders, or lists of pictures; those of a
    split lie in train/ and val/, or have names that begin so. Nothing that is there is changed.

    A folder of tokens gets a meta.json with its counts and its largest id, and checksums.

    \b
    Examples:
      trainmark data index /data/imagenet-tfrecord
      trainmark data index /data/records --labels-from 0
      trainmark data index /data/fineweb10B
    """
    from trainmark.data.indexing import index_set
    from trainmark.data.jobs import available_processors
    from trainmark.data.tokens.source import is_token_set
    from trainmark.data.tokens.verify import index_tokens

    workers = workers or available_processors()
    with Progress(f"indexing {path}") as display:
        if is_token_set(path):
            verdict = index_tokens(path, workers, display.progress)
            record, text = _verdict_record(path, verdict), _verdict_text(path, verdict)
        else:
            dataset = index_set(path, workers, labels_from, display.progress)
            classes, splits = len(dataset.classes), dict(dataset.splits)
            record = {"path": str(path), "format": dataset.format, "classes": classes, "splits": splits}
            text = f"{path}: {splits_text(splits)} pictures of {classes:,} classes as {dataset.format}."
    tell(record, text, as_json)
    return 0


SOUND, DAMAGED = 0, 1


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--decode", is_flag=True, help="Decode every picture too (slow).")
@workers_option
@json_option
def verify_command(path: Path, decode: bool, workers: int | None, as_json: bool) -> int:
    """Compare every file of the set in PATH with its checksum, and name the damaged records.

    A set without checksums is checked by the rules of its format. Exits with 1 where something is wrong.

    Of tokens, headers, sizes, indices, counts and every id are checked as well.

    \b
    Examples:
      trainmark data verify pictures-rec
      trainmark data verify /data/imagenet --decode --json
      trainmark data verify corpus
    """
    from trainmark.data.jobs import available_processors
    from trainmark.data.tokens.source import is_token_set
    from trainmark.data.tokens.verify import verify_tokens
    from trainmark.data.verify import verify

    workers = workers or available_processors()
    with Progress(f"verifying {path}") as display:
        if is_token_set(path):
            verdict = verify_tokens(path, workers, display.progress)
        else:
            verdict = verify(path, workers, decode, display.progress)
    tell(_verdict_record(path, verdict), _verdict_text(path, verdict), as_json)
    return SOUND if verdict.sound else DAMAGED


def _verdict_text(path: Path, verdict: SetVerdict) -> str:
    from trainmark.pages.number import counted

    files = counted(verdict.files, "file")
    if not verdict.sound:
        lines = [f"{path}: {counted(len(verdict.findings), 'finding')} in {files}, by {verdict.by}"]
        return "\n".join([*lines, *(f"  {finding}" for finding in verdict.findings)])
    content = counted(verdict.records, "record")
    if verdict.format:
        content = f"{splits_text(verdict.splits)} {verdict.unit}, the largest id {verdict.largest:,}"
    return f"{path} is sound: {files} with {content}, by {verdict.by}."


def _verdict_record(path: Path, verdict: SetVerdict) -> dict[str, Any]:
    record: dict[str, Any] = {"path": str(path), "sound": verdict.sound, "by": verdict.by}
    findings: list[dict[str, Any]] = [
        {"file": finding.file, "kind": finding.kind, "says": str(finding)} for finding in verdict.findings
    ]
    if verdict.format:
        record |= {"format": verdict.format, "files": verdict.files, "unit": verdict.unit}
        record |= {"splits": verdict.splits, "largest_id": verdict.largest}
    else:
        record |= {"files": verdict.files, "records": verdict.records}
        record["damaged_records"] = [name for finding in verdict.findings for name in finding.records]
        for entry, finding in zip(findings, verdict.findings, strict=True):
            entry["records"] = list(finding.records)
    return {**record, "findings": findings}


LEFT_OUT = "-"
INCOMPLETE = 1
# All are in --json.
SHOWN = 20


@click.command("imagenet")
@click.argument("train_tar")
@click.argument("val_tar")
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--val-labels",
    type=click.Path(path_type=Path),
    help="Classes of the validation images: a synset a line, the devkit's .tar.gz, or LOC_val_solution.csv.",
)
@click.option(
    "--on-bad",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="With damaged members: leave the set unfinished, or finish it without them.",
)
@workers_option
@json_option
def imagenet_command(
    train_tar: str,
    val_tar: str,
    out: Path,
    val_labels: Path | None,
    on_bad: str,
    workers: int | None,
    as_json: bool,
) -> int:
    """Unpack ImageNet's two tars (ILSVRC2012) into class folders in OUT.

    One pass over each; `-` in the place of one leaves it out. Started again, it goes on.
    Exit code 1 where something is damaged and is not skipped.

    \b
    Examples:
      trainmark data imagenet ILSVRC2012_img_train.tar ILSVRC2012_img_val.tar imagenet \\
          --val-labels ILSVRC2012_devkit_t12.tar.gz
      trainmark data imagenet ILSVRC2012_img_train.tar - imagenet
    """
    from trainmark.data.imagenet import unpack_imagenet
    from trainmark.data.imagenet_labels import read_labels
    from trainmark.data.jobs import available_processors

    train, val = _tar(train_tar), _tar(val_tar)
    if train is None and val is None:
        raise UserError("both tars are left out; give at least one.")
    if val is not None and val_labels is None:
        raise UserError(
            "the classes of the validation images are not in their tar; give them with --val-labels."
        )
    labels = read_labels(val_labels) if val is not None and val_labels is not None else None
    began = time.monotonic()
    with Progress(f"unpacking into {out}, MB:") as display:
        unpacked = unpack_imagenet(
            train, val, labels, out, workers or available_processors(), on_bad == "skip", display.progress
        )
    record = _unpacked_record(out, unpacked, time.monotonic() - began)
    tell(record, "\n".join(_unpacked_lines(record)), as_json)
    return 0 if unpacked.finished else INCOMPLETE


def _tar(given: str) -> Path | None:
    if given == LEFT_OUT:
        return None
    path = Path(given)
    if not path.is_file():
        raise UserError(f"{path} is not there, or no file; give the tar, or {LEFT_OUT} to leave it out.")
    return path


def _unpacked_record(out: Path, unpacked: UnpackedImageNet, seconds: float) -> dict[str, Any]:
    def notes(kind: str) -> list[dict[str, str]]:
        return [{"code": note.code, "what": note.text} for note in unpacked.of_kind(kind)]

    return {
        "path": str(out),
        "format": "folder",
        "finished": unpacked.finished,
        "classes": unpacked.classes,
        "splits": unpacked.splits,
        "written": unpacked.written,
        "bytes": unpacked.bytes,
        "seconds": round(seconds, 3),
        "damaged": notes("damaged"),
        "kept": notes("kept"),
    }


def _unpacked_lines(record: dict[str, Any]) -> list[str]:
    lines = []
    for what in ("damaged", "kept"):
        lines += [f"{what}: {note['what']}" for note in record[what][:SHOWN]]
        if more := len(record[what]) - SHOWN:
            lines += [f"{what}: {more:,} more; --json names them all"] if more > 0 else []
    contents = f"{splits_text(record['splits'])} pictures of {record['classes']:,} classes"
    if record["finished"]:
        code_counts = Counter(note["code"] for note in record["kept"])
        unusual = "".join(f", {count} {code}" for code, count in sorted(code_counts.items()))
        left_out = f", {len(record['damaged']):,} damaged left out" if record["damaged"] else ""
        return [*lines, f"{record['path']}: {contents}, {record['bytes'] / 1e9:.3f} GB{unusual}{left_out}."]
    return [
        *lines,
        f"{record['path']} is unfinished ({contents} so far): mend what is damaged and start again, "
        "or finish without it by --on-bad skip.",
    ]
