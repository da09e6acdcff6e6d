"""`trainmark data make` and `convert`: sets of pictures or tokens, made or in another format."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError, nearest
from trainmark.cli.options import json_option
from trainmark.cli.progress import Progress
from trainmark.data.command import splits_text, tell, workers_option

if TYPE_CHECKING:
    from trainmark.data.convert import ConvertOutcome
    from trainmark.data.make import Corpus, CorpusPlan, MadeSet
    from trainmark.data.scene import PicturePlan
    from trainmark.data.tokens.convert import ConvertedTokens


@click.command("make")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--images", type=click.IntRange(min=1), help="Training images, of all classes.")
@click.option("--tokens", type=click.IntRange(min=2), help="Training tokens: make a corpus, no pictures.")
@click.option("--classes", type=click.IntRange(min=2), help="How many classes.  [default for tokens: 16]")
@click.option(
    "--validation", type=click.IntRange(min=0), help="Validation images or tokens.  [default: a tenth]"
)
@click.option("--vocabulary", type=click.IntRange(min=2, max=1 << 24), help="Of a corpus.  [default: 512]")
@click.option("--order", type=click.IntRange(1, 3), help="Of the Markov chain of a corpus.  [default: 2]")
@click.option(
    "--format", "form", metavar="FORMAT", help="Of a corpus: llmc, nanogpt, megatron, arrow.  [default: llmc]"
)
@click.option(
    "--difficulty", default="medium", show_default=True, help="easy, medium, hard or a number from 0 to 1."
)
@click.option("--size", default="500x375", show_default=True, help="Of most pictures; some differ.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another set.")
@workers_option
@json_option
def make_command(
    out: Path,
    images: int | None,
    tokens: int | None,
    classes: int | None,
    validation: int | None,
    vocabulary: int | None,
    order: int | None,
    form: str | None,
    difficulty: str,
    size: str,
    seed: int,
    workers: int | None,
    as_json: bool,
) -> int:
    """Make a set of pictures in OUT whose classes differ in outline and texture, or a corpus of tokens.

    JPEGs as large as ImageNet's. The same arguments give the same bytes. Started again, it goes on.

    With --tokens, a Markov chain over classes of a Zipf vocabulary. Its entropy, the lowest loss that any
    model can reach, is known exactly and printed.

    \b
    Examples:
      trainmark data make pictures --classes 10 --images 2000
      trainmark data make tiny --classes 4 --images 64 --size 96x72 --difficulty easy
      trainmark data make corpus --tokens 2000000 --vocabulary 512 --order 2
    """
    if tokens is not None:
        if images is not None:
            raise UserError("give --images or --tokens, not both.")
        validation = tokens // 10 if validation is None else validation
        chain = vocabulary or 512, order or 2, classes or 16
        record, text = _made_corpus(out, tokens, validation, *chain, seed, form or "llmc")
    elif classes is None or images is None:
        raise UserError("give --classes and --images for pictures, or --tokens for a corpus.")
    elif vocabulary or order or form:
        raise UserError("--vocabulary, --order and --format are for a corpus; give --tokens.")
    else:
        record, text = _made_pictures(out, classes, images, validation, difficulty, size, seed, workers)
    tell(record, text, as_json)
    return 0


def _made_pictures(
    out: Path,
    classes: int,
    images: int,
    validation: int | None,
    difficulty: str,
    size: str,
    seed: int,
    workers: int | None,
) -> tuple[dict[str, Any], str]:
    from trainmark.data.jobs import available_processors
    from trainmark.data.make import make_set
    from trainmark.data.scene import PicturePlan, default_validation, parse_difficulty, parse_size

    validation = default_validation(images, classes) if validation is None else validation
    plan = PicturePlan(classes, images, validation, parse_difficulty(difficulty), *parse_size(size), seed)
    began = time.monotonic()
    with Progress(f"making {out}") as display:
        made = make_set(plan, out, workers or available_processors(), display.progress, _encoder())
    record = _made_record(out, plan, made, time.monotonic() - began)
    return record, _made_text(record)


def _made_corpus(
    out: Path,
    tokens: int,
    validation: int,
    vocabulary: int,
    order: int,
    classes: int,
    seed: int,
    form: str,
) -> tuple[dict[str, Any], str]:
    from trainmark.data.make import CorpusPlan, make_corpus

    plan = CorpusPlan(tokens, validation, vocabulary, order, classes, seed, form)
    began = time.monotonic()
    with Progress(f"making {out}, tokens:") as display:
        corpus = make_corpus(plan, out, display.progress)
    record = _corpus_record(out, plan, corpus, time.monotonic() - began)
    return record, _corpus_text(record)


def _encoder() -> dict[str, Any]:
    """The versions that decide over the bytes."""
    try:
        import PIL
        from PIL import features
    except ImportError as error:
        raise UserError("making pictures needs Pillow; pip install pillow.") from error
    import numpy as np

    library = "libjpeg-turbo" if features.check("libjpeg_turbo") else "libjpeg"
    version = features.version("libjpeg_turbo") or features.version("jpg")
    return {"encoder": f"Pillow {PIL.__version__}, {library} {version}", "numpy": np.__version__}


def _made_record(out: Path, plan: PicturePlan, made: MadeSet, seconds: float) -> dict[str, Any]:
    return {
        "path": str(out),
        "format": "folder",
        "classes": plan.classes,
        "splits": plan.splits,
        "images": made.pictures,
        "drawn": made.drawn,
        "bytes": made.bytes,
        "seconds": round(seconds, 3),
        "images_per_second": round(made.drawn / seconds, 1) if made.drawn else None,
    }


def _made_text(record: dict[str, Any]) -> str:
    content = f"{splits_text(record['splits'])} pictures of {record['classes']} classes"
    size = f"{record['bytes'] / 1e6:,.1f} MB, {record['bytes'] / record['images'] / 1e3:.1f} kB each"
    if not record["drawn"]:
        return f"{record['path']} is complete already: {content}, {size}."
    speed = f"{record['drawn']:,} drawn in {record['seconds']:.1f} s, {record['images_per_second']:,.0f}/s"
    return f"{record['path']}: {content}, {size}; {speed}."


def _corpus_record(out: Path, plan: CorpusPlan, corpus: Corpus, seconds: float) -> dict[str, Any]:
    total = sum(corpus.splits.values())
    return {
        "path": str(out),
        "format": plan.format,
        "splits": corpus.splits,
        "vocabulary": plan.vocabulary,
        "order": plan.order,
        "classes": plan.classes,
        "seed": plan.seed,
        "entropy": corpus.entropy,
        "plateaus": list(corpus.plateaus),
        "complete_already": not corpus.drawn,
        "bytes": corpus.bytes,
        "seconds": round(seconds, 3),
        "tokens_per_second": round(total / seconds) if corpus.drawn else None,
    }


def _corpus_text(record: dict[str, Any]) -> str:
    state = " is complete already" if record["complete_already"] else ""
    lines = [
        f"{record['path']}{state}: {splits_text(record['splits'])} tokens of a vocabulary of "
        f"{record['vocabulary']:,} as {record['format']}, {record['bytes'] / 1e6:,.1f} MB.",
        f"entropy {record['entropy']:.4f} nats a token: no model's loss can be lower",
    ]
    for seen, loss in enumerate(record["plateaus"][:-1]):
        context = "no context" if not seen else f"the last {seen} tokens" if seen > 1 else "the last token"
        lines.append(f"{loss:>15.4f} is the best from {context}")
    return "\n".join(lines)


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
@workers_option
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
    from trainmark.data.tokens.source import TOKEN_FORMATS, is_token_set

    if shards and records_per_shard:
        raise UserError("give --shards or --records-per-shard, not both.")
    began = time.monotonic()
    if to in TOKEN_FORMATS or is_token_set(source):
        if records_per_shard:
            raise UserError("--records-per-shard is for pictures; give --shards.")
        from trainmark.data.tokens.convert import LENGTH, TokenRequest, convert_tokens

        tokens = TokenRequest(
            source, target, to, shards, vocabulary, length or LENGTH, _ids(special), masking or 0
        )
        with Progress(f"converting {source}") as display:
            converted = convert_tokens(tokens, display.progress)
        record = _tokens_record(target, to, converted, time.monotonic() - began)
        tell(record, _tokens_text(record), as_json)
        return 0
    if any(value is not None for value in (vocabulary, length, special, masking)):
        raise UserError(
            "--vocabulary, --length, --special and --masking are for tokens, and these are pictures."
        )
    from trainmark.data.convert import ConvertRequest, convert
    from trainmark.data.jobs import available_processors

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
    with Progress(f"converting {source}") as display:
        outcome = convert(request, display.progress)
    record = _converted_record(request.target, to, outcome, time.monotonic() - began)
    tell(record, _converted_text(record), as_json)
    return 0


def _ids(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    words = text.split(",")
    if len(words) != 4 or not all(word.strip().isdecimal() for word in words):
        raise UserError(f"--special {text}: give four ids, as in 0,101,102,103.")
    return tuple(int(word) for word in words)


def _kinds(words: str | None) -> frozenset[str]:
    from trainmark.data.picture import KEEPABLE, TOLERATED_IN_SET

    if words is None:
        return TOLERATED_IN_SET
    kinds = frozenset(word for word in words.replace(" ", "").split(",") if word and word != "none")
    for kind in sorted(kinds - KEEPABLE):
        raise UserError(f"--keep: there is no kind '{kind}' that can be kept{nearest(kind, KEEPABLE)}")
    return kinds


def _converted_record(target: Path, to: str, outcome: ConvertOutcome, seconds: float) -> dict[str, Any]:
    problems = Counter(code for trouble in outcome.troubles for code in trouble.codes)
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
        "problems": dict(problems),
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


def _converted_text(record: dict[str, Any]) -> str:
    content = f"{splits_text(record['written'])} pictures as {record['format']}"
    if record["complete_already"]:
        return f"{record['path']} is complete already: {content}."
    speed = f"{record['bytes'] / 1e6:,.1f} MB in {record['seconds']:.1f} s"
    lines = [f"{record['path']}: {content}, {speed}; {record['skipped']:,} skipped."]
    named = record["pictures"]
    lines += [f"  {'kept' if one['kept'] else 'skipped'}: {one['says']}" for one in named[:NAMED]]
    if len(named) > NAMED:
        lines.append(f"  and {len(named) - NAMED:,} more, named in {record['path']}/dataset.json")
    return "\n".join(lines)


def _tokens_record(out: Path, to: str, converted: ConvertedTokens, seconds: float) -> dict[str, Any]:
    return {
        "path": str(out),
        "format": to,
        "complete_already": converted.already,
        "unit": converted.unit,
        "splits": converted.splits,
        "vocabulary": converted.vocabulary,
        "bytes": converted.bytes,
        "seconds": round(seconds, 3),
    }


def _tokens_text(record: dict[str, Any]) -> str:
    content = f"{splits_text(record['splits'])} {record['unit']} as {record['format']}"
    if record["complete_already"]:
        return f"{record['path']} is complete already: {content}."
    speed = f"{record['bytes'] / 1e6:,.1f} MB in {record['seconds']:.1f} s"
    return f"{record['path']}: {content}, vocabulary {record['vocabulary']:,}, {speed}."
