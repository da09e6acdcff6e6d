"""What `trainmark data` says of token sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmark.datasets.tokens.convert import Converted
    from trainmark.datasets.tokens.make import Corpus, CorpusPlan
    from trainmark.datasets.tokens.verify import TokenVerdict


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
    from trainmark.report.format.number import counted

    files = counted(verdict.files, "file")
    if verdict.sound:
        content = f"{splits_text(verdict.splits)} {verdict.unit}, the largest id {verdict.largest:,}"
        return f"{path} is sound: {files} with {content}, by {verdict.by}."
    lines = [f"{path}: {counted(len(verdict.findings), 'finding')} in {files}, by {verdict.by}"]
    return "\n".join([*lines, *(f"  {finding}" for finding in verdict.findings)])
