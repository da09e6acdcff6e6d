"""`trainmark data imagenet`: from the ILSVRC2012 tars to class folders."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.common.options import json_option
from trainmark.cli.common.terminal import print_json
from trainmark.errors import UserError

if TYPE_CHECKING:
    from trainmark.datasets.imagenet.imagenet import Unpacked

LEFT_OUT = "-"
DAMAGED = 1
# All are in --json.
SHOWN = 20


@click.command("imagenet", short_help="Unpack ImageNet's two tars into class folders.")
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
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one a processor]")
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
    from trainmark.cli.data.live import data_display
    from trainmark.datasets.imagenet.imagenet import unpack_imagenet
    from trainmark.datasets.imagenet.labels import read_labels
    from trainmark.datasets.workers import available

    train, val = _tar(train_tar), _tar(val_tar)
    if train is None and val is None:
        raise UserError("both tars are left out; give at least one.")
    if val is not None and val_labels is None:
        raise UserError(
            "the classes of the validation images are not in their tar; give them with --val-labels."
        )
    labels = read_labels(val_labels) if val is not None and val_labels is not None else None
    began = time.monotonic()
    with data_display(f"unpacking into {out}, MB:") as display:
        unpacked = unpack_imagenet(
            train, val, labels, out, workers or available(), on_bad == "skip", display.progress
        )
    record = _record(out, unpacked, time.monotonic() - began)
    if as_json:
        print_json(record)
    else:
        click.echo("\n".join(_lines(record)))
    return 0 if unpacked.finished else DAMAGED


def _tar(given: str) -> Path | None:
    if given == LEFT_OUT:
        return None
    path = Path(given)
    if not path.is_file():
        raise UserError(f"{path} is not there, or no file; give the tar, or {LEFT_OUT} to leave it out.")
    return path


def _record(out: Path, unpacked: Unpacked, seconds: float) -> dict[str, Any]:
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


def _lines(record: dict[str, Any]) -> list[str]:
    lines = []
    for what in ("damaged", "kept"):
        lines += [f"{what}: {note['what']}" for note in record[what][:SHOWN]]
        if more := len(record[what]) - SHOWN:
            lines += [f"{what}: {more:,} more; --json names them all"] if more > 0 else []
    splits = " and ".join(f"{count:,} {split}" for split, count in record["splits"].items())
    contents = f"{splits} pictures of {record['classes']:,} classes"
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
