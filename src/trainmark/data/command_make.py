"""`trainmark data make` and `tokens`: datasets made here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.options import json_option
from trainmark.cli.terminal import print_json

if TYPE_CHECKING:
    from trainmark.data.make import MadeSet
    from trainmark.data.scene import PicturePlan
    from trainmark.data.tokens.convert import Converted
    from trainmark.data.tokens.make import Corpus, CorpusPlan
    from trainmark.data.tokens.verify import TokenVerdict


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
@click.option("--workers", type=click.IntRange(min=1), help="Processes.  [default: one a processor]")
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
        return _make_corpus(
            out,
            tokens,
            tokens // 10 if validation is None else validation,
            vocabulary or 512,
            order or 2,
            classes or 16,
            seed,
            form or "llmc",
            as_json,
        )
    if classes is None or images is None:
        raise UserError("give --classes and --images for pictures, or --tokens for a corpus.")
    if vocabulary or order or form:
        raise UserError("--vocabulary, --order and --format are for a corpus; give --tokens.")
    from trainmark.cli.progress import Progress
    from trainmark.data.make import make_set
    from trainmark.data.scene import PicturePlan, default_validation, parse_difficulty, parse_size
    from trainmark.data.workers import available_processors

    width, height = parse_size(size)
    plan = PicturePlan(
        classes=classes,
        images=images,
        validation=default_validation(images, classes) if validation is None else validation,
        difficulty=parse_difficulty(difficulty),
        width=width,
        height=height,
        seed=seed,
    )
    began = time.monotonic()
    with Progress(f"making {out}") as display:
        made = make_set(plan, out, workers or available_processors(), display.progress, _encoder())
    record = _record(out, plan, made, time.monotonic() - began)
    if as_json:
        print_json(record)
    else:
        click.echo(_sentence(record))
    return 0


def _make_corpus(
    out: Path,
    tokens: int,
    validation: int,
    vocabulary: int,
    order: int,
    classes: int,
    seed: int,
    form: str,
    as_json: bool,
) -> int:
    from trainmark.cli.progress import Progress
    from trainmark.data.tokens.make import CorpusPlan, make_corpus

    plan = CorpusPlan(tokens, validation, vocabulary, order, classes, seed, form)
    began = time.monotonic()
    with Progress(f"making {out}, tokens:") as display:
        corpus = make_corpus(plan, out, display.progress)
    record = corpus_record(out, plan, corpus, time.monotonic() - began)
    if as_json:
        print_json(record)
    else:
        click.echo(corpus_text(record))
    return 0


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


def _record(out: Path, plan: PicturePlan, made: MadeSet, seconds: float) -> dict[str, Any]:
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


def _sentence(record: dict[str, Any]) -> str:
    splits = " and ".join(f"{count:,} {split}" for split, count in record["splits"].items())
    size = f"{record['bytes'] / 1e6:,.1f} MB, {record['bytes'] / record['images'] / 1e3:.1f} kB each"
    if not record["drawn"]:
        return (
            f"{record['path']} is complete already: {splits} pictures of {record['classes']} classes, {size}."
        )
    speed = f"{record['drawn']:,} drawn in {record['seconds']:.1f} s, {record['images_per_second']:,.0f}/s"
    return f"{record['path']}: {splits} pictures of {record['classes']} classes, {size}; {speed}."


def splits_text(splits: dict[str, int]) -> str:
    return " and ".join(f"{count:,} {split}" for split, count in splits.items())


def corpus_record(out: Path, plan: CorpusPlan, corpus: Corpus, seconds: float) -> dict[str, Any]:
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


def corpus_text(record: dict[str, Any]) -> str:
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


def converted_record(out: Path, to: str, converted: Converted, seconds: float) -> dict[str, Any]:
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


def converted_text(record: dict[str, Any]) -> str:
    content = f"{splits_text(record['splits'])} {record['unit']} as {record['format']}"
    if record["complete_already"]:
        return f"{record['path']} is complete already: {content}."
    speed = f"{record['bytes'] / 1e6:,.1f} MB in {record['seconds']:.1f} s"
    return f"{record['path']}: {content}, vocabulary {record['vocabulary']:,}, {speed}."


def verdict_record(path: Path, verdict: TokenVerdict) -> dict[str, Any]:
    return {
        "path": str(path),
        "sound": verdict.sound,
        "by": verdict.by,
        "format": verdict.format,
        "files": verdict.files,
        "unit": verdict.unit,
        "splits": verdict.splits,
        "largest_id": verdict.largest,
        "findings": [
            {"file": finding.file, "kind": finding.kind, "says": str(finding)} for finding in verdict.findings
        ],
    }


def verdict_text(path: Path, verdict: TokenVerdict) -> str:
    from trainmark.pages.number import counted

    files = counted(verdict.files, "file")
    if verdict.sound:
        content = f"{splits_text(verdict.splits)} {verdict.unit}, the largest id {verdict.largest:,}"
        return f"{path} is sound: {files} with {content}, by {verdict.by}."
    lines = [f"{path}: {counted(len(verdict.findings), 'finding')} in {files}, by {verdict.by}"]
    return "\n".join([*lines, *(f"  {finding}" for finding in verdict.findings)])
