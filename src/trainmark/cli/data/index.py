"""`trainmark data index`: a set that somebody else made becomes one of ours."""

from __future__ import annotations

from pathlib import Path

import click

from trainmark.cli.common.options import json_option
from trainmark.cli.common.terminal import print_json


@click.command("index", short_help="Index a set that somebody else made.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--labels-from",
    type=click.IntRange(0, 1),
    help="What the labels in the records count from.  [default: 1 in tfrecord, 0 elsewhere]",
)
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one a processor]")
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
    from trainmark.cli.data.live import data_display
    from trainmark.cli.data.tokens import verdict_record, verdict_text
    from trainmark.datasets.indexing.indexing import index_set
    from trainmark.datasets.tokens.index import index_tokens
    from trainmark.datasets.tokens.recognise import is_token_set
    from trainmark.datasets.workers import available

    if is_token_set(path):
        with data_display(f"indexing {path}") as display:
            verdict = index_tokens(path, workers or available(), display.progress)
        if as_json:
            print_json(verdict_record(path, verdict))
        else:
            click.echo(verdict_text(path, verdict))
        return 0
    with data_display(f"indexing {path}") as display:
        dataset = index_set(path, workers or available(), labels_from, display.progress)
    record = {
        "path": str(path),
        "format": dataset.format,
        "classes": len(dataset.classes),
        "splits": dict(dataset.splits),
    }
    splits = " and ".join(f"{count:,} {split}" for split, count in dataset.splits.items())
    text = f"{path}: {splits} pictures of {len(dataset.classes):,} classes as {dataset.format}."
    if as_json:
        print_json(record)
    else:
        click.echo(text)
    return 0
