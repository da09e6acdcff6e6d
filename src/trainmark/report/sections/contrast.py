"""Cases beside the baseline that they took turns with: a sentence for each, and all of them in one table."""

from __future__ import annotations

from typing import Any

from trainmark.measure.ab import ERROR, FEWEST_PAIRS, ABVerdict, BaselineContrast
from trainmark.measure.doubts import DoubtCode, Severity
from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.report.document import Document
from trainmark.report.format.doubt_words import doubt_name
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, words

ONE_DEVICE = "-1n1g"  # of a program's name says nothing


def contrast_table(document: Document, lang: Lang) -> Table | None:
    """One row for each case, the baseline first; None where nothing was compared."""
    if not document.contrasts:
        return None
    t, results = words(lang), _results(document)
    baseline = document.contrasts[0].baseline
    rows = [
        _row(slug, results.get(slug), contrast, t, lang)
        for slug, contrast in ((baseline, None), *((each.case, each) for each in document.contrasts))
    ]
    rate = "/".join({label.rate_unit(result.unit): None for result in results.values()}) or t["throughput"]
    ratio, verdict = t["ratio"], t["contrast_verdict"]
    return Table(
        (t["case"], rate, t["interval"], "n", ratio, "", verdict, t["doubts"]), rows, frozenset({1, 3, 4})
    )


def contrast_sentences(document: Document, lang: Lang = "en") -> list[str]:
    """`train-compile is 1.230 × train [1.190, 1.270], certain after 6 pairs.`, and what makes it doubtful."""
    t, results = words(lang), _results(document)
    return [_sentence(document, contrast, results, t, lang) for contrast in document.contrasts]


def doubts_sentence(document: Document, contrast: BaselineContrast, lang: Lang = "en") -> str:
    """Return ` In doubt: host-busy.`, of either side, or nothing."""
    codes = _doubts(_sides(contrast, _results(document)))
    doubts = ", ".join(doubt_name(code, lang) for code in codes)
    return words(lang)["contrast_doubts"].format(doubts=doubts) if doubts else ""


def contrast_note(lang: Lang) -> str:
    return words(lang)["contrast_note"].format(confidence=number.percent(1 - ERROR, 0))


def contrast_trees(document: Document) -> list[dict[str, Any]]:
    """The comparisons under the names of the contract."""
    results = _results(document)
    return [
        {
            "baseline": contrast.baseline,
            "case": contrast.case,
            "ratio": contrast.judgement.ratio if contrast.judgement else None,
            "low": contrast.bounds[0] if contrast.bounds else None,
            "high": contrast.bounds[1] if contrast.bounds else None,
            "verdict": contrast.verdict.value,
            "pairs": len(contrast.pairs),
            "matters": contrast.matters,
            "doubts": [code.value for code in _doubts(_sides(contrast, results))],
            "sentence": sentence,
        }
        for contrast, sentence in zip(document.contrasts, contrast_sentences(document), strict=True)
    ]


def _sentence(
    document: Document, contrast: BaselineContrast, results: dict[str, Result], t: dict[str, str], lang: Lang
) -> str:
    names = {"case": _name(contrast.case), "baseline": _name(contrast.baseline)}
    judged, verdict = contrast.judgement, contrast.verdict
    if judged is None:
        failed = contrast.baseline if contrast.baseline not in results else contrast.case
        ended = next((line for line in document.trials if line.case == failed and line.detail), None)
        reason = f"{ended.outcome}: {ended.detail}".rstrip(".") if ended else t["contrast_not_run"]
        return t["contrast_none"].format(failed=_name(failed), reason=reason, **names)
    if verdict is ABVerdict.UNDECIDED:
        name = "contrast_open" if contrast.bounds else "contrast_few"
    else:
        name = "contrast_as_fast" if verdict is ABVerdict.SAME else "contrast_certain"
    sentence = t[name].format(
        ratio=f"{judged.ratio:.3f}",
        bounds=_bounds(contrast),
        pairs=judged.pairs,
        largest=number.percent(contrast.largest_difference),
        needed=FEWEST_PAIRS,
        **names,
    )
    return sentence + doubts_sentence(document, contrast, lang)


def _row(
    slug: str, result: Result | None, contrast: BaselineContrast | None, t: dict[str, str], lang: Lang
) -> list[str]:
    doubts = ", ".join(doubt_name(code, lang) for code in _doubts([result]))
    judged = contrast and contrast.judgement
    return [
        _name(slug),
        number.throughput(result.throughput if result else None),
        number.interval(result.interval) if result and result.interval else "",
        str(result.n if result else 0),
        "1" if contrast is None else f"×{judged.ratio:.3f}" if judged else number.MISSING,
        _bounds(contrast) if contrast else "",
        t[f"contrast_{contrast.verdict.value}" if contrast else "contrast_baseline"],
        doubts,
    ]


def _bounds(contrast: BaselineContrast) -> str:
    return f"[{contrast.bounds[0]:.3f}, {contrast.bounds[1]:.3f}]" if contrast.bounds else ""


def _sides(contrast: BaselineContrast, results: dict[str, Result]) -> list[Result | None]:
    return [results.get(contrast.baseline), results.get(contrast.case)]


def _doubts(results: list[Result | None]) -> dict[DoubtCode, None]:
    grave = [d.code for each in results if each for d in each.doubts if d.severity is not Severity.NOTE]
    return dict.fromkeys(grave)


def _results(document: Document) -> dict[str, Result]:
    by_key = {result.key: result for result in document.results}
    return {slug: by_key[key] for slug, key in document.keys.items() if key in by_key}


def _name(slug: str) -> str:
    return slug.removesuffix(ONE_DEVICE)
