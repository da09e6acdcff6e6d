"""`trainmark data convert`: a set in the format that a framework reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.options import json_option
from trainmark.cli.terminal import print_json

if TYPE_CHECKING:
    from trainmark.cli.progress import Progress
    from trainmark.data.convert import ConvertOutcome

SECONDS_BETWEEN_LOOKS = 0.25
#: So many are named in the text; `--json` and dataset.json name all.
NAMED = 20


@click.command("convert")
@click.argument("source", metavar="SRC", type=click.Path(path_type=Path))
@click.argument("target", metavar="DST", type=click.Path(path_type=Path))
@click.option(
    "--to",
    required=True,
    metavar="FORMAT",
    help="rec, tfrecord, ofrecord, mindrecord, beton, webdataset, list or folder; "
    "tokens: llmc, nanogpt, megatron, arrow, mlm or tfrecord.",
)
@click.option("--shards", type=click.IntRange(1), help="Files a split.  [default: in proportion to ImageNet]")
@click.option("--records-per-shard", type=click.IntRange(1), help="Instead: pictures a file.")
@click.option(
    "--shuffle",
    "seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Another order of the training pictures.",
)
@click.option("--in-order", is_flag=True, help="Keep the order of SRC.")
@click.option(
    "--on-bad",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="What a bad picture does.",
)
@click.option(
    "--keep",
    metavar="KINDS",
    help="Kinds of odd pictures to keep, or none.  [default: cmyk,mislabelled,not-jpeg]",
)
@click.option("--vocabulary", type=click.IntRange(2, 1 << 31), help="Of tokens, where the files do not say.")
@click.option("--length", type=click.IntRange(8), help="Tokens of an MLM record.  [default: 128]")
@click.option(
    "--special",
    metavar="IDS",
    help="Of [PAD], [CLS], [SEP] and [MASK] in MLM records.  [default: above the vocabulary]",
)
@click.option("--masking", type=click.IntRange(0), help="Seed of MLM records; else 0.")
@click.option("--workers", type=click.IntRange(1), help="Processes.  [default: one a processor]")
@json_option
def convert_command(
    source: Path,
    target: Path,
    to: str,
    shards: int | None,
    records_per_shard: int | None,
    seed: int,
    in_order: bool,
    on_bad: str,
    keep: str | None,
    vocabulary: int | None,
    length: int | None,
    special: str | None,
    masking: int | None,
    workers: int | None,
    as_json: bool,
) -> int:
    """Write the pictures of SRC into DST in another format; their bytes stay as they are.

    SRC is a set of any format, or class folders. Every bad picture is named. Started again, it goes on.

    Of a set of tokens, the ids stay as they are; --to mlm makes MLM records of a corpus.

    \b
    Examples:
      trainmark data convert pictures pictures-rec --to rec
      trainmark data convert pictures pictures-tfrecord --to tfrecord --shards 16
      trainmark data convert /data/imagenet /data/imagenet-beton --to beton --on-bad skip
      trainmark data convert corpus corpus-megatron --to megatron
      trainmark data convert corpus corpus-mlm --to mlm --length 128
    """
    from trainmark.cli.progress import Progress
    from trainmark.data.convert import ConvertRequest, convert
    from trainmark.data.tokens.source import TOKEN_FORMATS, is_token_set
    from trainmark.data.workers import available_processors

    if shards and records_per_shard:
        raise UserError("give --shards or --records-per-shard, not both.")
    if to in TOKEN_FORMATS or is_token_set(source):
        if records_per_shard:
            raise UserError("--records-per-shard is for pictures; give --shards.")
        return _convert_tokens(source, target, to, shards, vocabulary, length, special, masking, as_json)
    if any(value is not None for value in (vocabulary, length, special, masking)):
        raise UserError(
            "--vocabulary, --length, --special and --masking are for tokens, and these are pictures."
        )
    request = ConvertRequest(
        source,
        target,
        to,
        seed=None if in_order else seed,
        shards=shards,
        records_per_shard=records_per_shard,
        on_bad=on_bad,
        keep=_kinds(keep),
        workers=workers or available_processors(),
    )
    began = time.monotonic()
    with Progress(f"converting {source}") as display, _watched(display) as begun:
        outcome = convert(request, begun)
    record = _record(request.target, to, outcome, time.monotonic() - began)
    if as_json:
        print_json(record)
    else:
        click.echo(_text(record))
    return 0


def _convert_tokens(
    source: Path,
    target: Path,
    to: str,
    shards: int | None,
    vocabulary: int | None,
    length: int | None,
    special: str | None,
    masking: int | None,
    as_json: bool,
) -> int:
    from trainmark.cli.progress import Progress
    from trainmark.data.command_make import converted_record, converted_text
    from trainmark.data.tokens.convert import LENGTH, TokenRequest, convert_tokens

    request = TokenRequest(
        source, target, to, shards, vocabulary, length or LENGTH, _ids(special), masking or 0
    )
    began = time.monotonic()
    with Progress(f"converting {source}") as display:
        converted = convert_tokens(request, display.progress)
    record = converted_record(target, to, converted, time.monotonic() - began)
    if as_json:
        print_json(record)
    else:
        click.echo(converted_text(record))
    return 0


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    words = text.split(",")
    if len(words) != 4 or not all(word.strip().isdecimal() for word in words):
        raise UserError(f"--special {text}: give four ids, as in 0,101,102,103.")
    return tuple(int(word) for word in words)


def _kinds(words: str | None) -> frozenset[str]:
    from trainmark.base.errors import nearest
    from trainmark.data.defects import KEEPABLE, TOLERATED

    if words is None:
        return TOLERATED
    kinds = frozenset(word for word in words.replace(" ", "").split(",") if word and word != "none")
    for kind in sorted(kinds - KEEPABLE):
        raise UserError(f"--keep: there is no kind '{kind}' that can be kept{nearest(kind, KEEPABLE)}")
    return kinds


@contextmanager
def _watched(display: Progress) -> Iterator[Any]:
    """A function that begins to show the progress which the processes leave in the journal."""
    from trainmark.data.workers import pictures_done

    over = threading.Event()

    def watch(journal: Path, total: int) -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            display.progress(pictures_done(journal), total)

    def begun(journal: Path, total: int) -> None:
        threading.Thread(target=watch, args=(journal, total), daemon=True).start()

    try:
        yield begun
    finally:
        over.set()


def _record(target: Path, to: str, outcome: ConvertOutcome, seconds: float) -> dict[str, Any]:
    from trainmark.data.defects import count_defects

    return {
        "path": str(target),
        "format": to,
        "complete_already": outcome.already,
        "found": outcome.pictures,
        "written": outcome.written,
        "skipped": outcome.skipped,
        "files": outcome.files,
        "bytes": outcome.bytes,
        "seconds": round(seconds, 3),
        "problems": count_defects(outcome.troubles),
        "pictures": [
            {
                "name": trouble.name,
                "problems": list(trouble.codes),
                "kept": trouble.tolerated,
                "note": trouble.note,
                "says": str(trouble),
            }
            for trouble in outcome.troubles
        ],
    }


def _text(record: dict[str, Any]) -> str:
    splits = " and ".join(f"{count:,} {split}" for split, count in record["written"].items())
    if record["complete_already"]:
        return f"{record['path']} is complete already: {splits} pictures as {record['format']}."
    speed = f"{record['bytes'] / 1e6:,.1f} MB in {record['seconds']:.1f} s"
    lines = [
        f"{record['path']}: {splits} pictures as {record['format']}, {speed}; {record['skipped']:,} skipped."
    ]
    named = record["pictures"]
    lines += [f"  {'kept' if one['kept'] else 'skipped'}: {one['says']}" for one in named[:NAMED]]
    if len(named) > NAMED:
        lines.append(f"  and {len(named) - NAMED:,} more, named in {record['path']}/dataset.json")
    return "\n".join(lines)
