"""A confirmation as a small JSON object: for a chat hook, and for scripts."""

from __future__ import annotations

import json
import math
from typing import Any

from trainmark.measure.ab import ABVerdict, Confirmation
from trainmark.report.format.words import Lang
from trainmark.report.watch.text import sentence
from trainmark.report.watch.words import watch_words

SCHEMA = 1
STATUS = {
    ABVerdict.SLOWER: "regression",
    ABVerdict.FASTER: "improvement",
    ABVerdict.SAME: "same",
    ABVerdict.UNDECIDED: "undecided",
}


def hook(confirmation: Confirmation | None, lang: Lang = "en") -> dict[str, Any]:
    """Return the object; `alert` only for a confirmed regression, `text` is one sentence for people."""
    if confirmation is None:
        return {"schema": SCHEMA, "status": "nothing", "alert": False, "text": watch_words(lang)["no_change"]}
    judgement, pairs = confirmation.judgement, confirmation.pairs
    measured = {
        "ratio": judgement.ratio,
        "low": judgement.low if judgement.low > 0 else None,
        "high": judgement.high if math.isfinite(judgement.high) else None,
    }
    levels = confirmation.levels
    return {
        "schema": SCHEMA,
        "status": STATUS[confirmation.verdict],
        "alert": confirmation.verdict is ABVerdict.SLOWER,
        "text": sentence(confirmation, lang),
        "case": confirmation.case,
        "before": {"run": confirmation.before, "throughput": levels and levels[0]},
        "after": {"run": confirmation.after, "throughput": levels and levels[1]},
        "unit": confirmation.unit,
        **(measured if pairs else dict.fromkeys(measured)),
        "pairs": len(pairs),
        "matters": confirmation.matters,
        "error": judgement.error,
        "seconds": round(confirmation.seconds, 3),
        "differences": [
            {
                "name": difference.name,
                "before": difference.before,
                "after": difference.after,
                "remade": difference.remade,
            }
            for difference in confirmation.differences
        ],
        "folder": confirmation.folder,
    }


def render(confirmation: Confirmation | None, lang: Lang = "en") -> str:
    return json.dumps(hook(confirmation, lang), indent=1, ensure_ascii=False) + "\n"
