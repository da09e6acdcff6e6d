"""A confirmation of a suspected change: the answer, and what it says to CI and to a chat."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from trainmark.base.text import one_line, visible
from trainmark.measure.ab import ABVerdict, Confirmation, FactDifference
from trainmark.pages import number
from trainmark.pages.facts import fact_title
from trainmark.view import terminal
from trainmark.view.blocks import Items, Page
from trainmark.view.catalogue import Lang, translated
from trainmark.view.message import Message, _, _n

SCHEMA = 1
STATUS = {
    ABVerdict.SLOWER: "regression",
    ABVerdict.FASTER: "improvement",
    ABVerdict.SAME: "same",
    ABVerdict.UNDECIDED: "undecided",
}
SUITE = "trainmark watch"


def watch_page(confirmation: Confirmation | None) -> Page:
    return Page(_("Confirmation"), [Items(list(_sentences(confirmation)))])


def _sentences(confirmation: Confirmation | None) -> Iterator[Message]:
    """Yield the answer, the two levels, and the facts that the sides differ in."""
    yield sentence(confirmation)
    if confirmation is None:
        return
    if levels := confirmation.levels:
        before, after = map(number.throughput, levels)
        unit = f"{confirmation.unit}/s"
        yield _("medians: {before} → {after} {unit}", before=before, after=after, unit=unit)
    ordered = sorted(confirmation.differences, key=lambda difference: not difference.remade)
    for difference in ordered:
        fact = _fact(difference)
        remade = difference.remade
        yield (
            _("differs: {difference}", difference=fact)
            if remade
            else _("not put back: {difference}", difference=fact)
        )
    if confirmation.folder:
        yield _("folder: {folder}", folder=confirmation.folder)


def sentence(confirmation: Confirmation | None) -> Message:
    """Return the answer in one sentence, with the size, its interval and what it rests on."""
    if confirmation is None:
        return _("no change of level is suspected in these runs.")
    judgement = confirmation.judgement
    values = {
        "case": confirmation.case,
        "before": confirmation.before,
        "after": confirmation.after,
        "size": _ratio(confirmation),
    }
    if confirmation.verdict is ABVerdict.UNDECIDED:
        reason = confirmation.reason
        return _("{case} is undecided: {reason} ({size}, {after} against {before}).", reason=reason, **values)
    certain = _n(
        judgement.pairs,
        "after 1 pair, wrong with probability ≤ {error}",
        "after {count} pairs, wrong with probability ≤ {error}",
        error=f"{judgement.error:.2g}",
    )
    values |= {
        "share": f"{confirmation.matters:.2%}".replace(".00", "").replace("%", " %"),
        "certainty": certain,
    }
    if confirmation.verdict is ABVerdict.SLOWER:
        return _(
            "{case} is slower by more than {share}: {size}, {after} against {before}, {certainty}.", **values
        )
    if confirmation.verdict is ABVerdict.FASTER:
        return _(
            "{case} is faster by more than {share}: {size}, {after} against {before}, {certainty}.", **values
        )
    return _("{case} differs by less than {share}: {size}, {after} against {before}, {certainty}.", **values)


def _ratio(confirmation: Confirmation) -> str:
    """`×0.970 [0.962, 0.976]`."""
    judgement = confirmation.judgement
    if not confirmation.pairs:
        return _("no pair was measured")
    if judgement.low <= 0:
        return _("{ratio} [no interval yet]", ratio=f"×{judgement.ratio:.3f}")
    return f"×{judgement.ratio:.3f} [{judgement.low:.3f}, {judgement.high:.3f}]"


def _fact(difference: FactDifference) -> Message:
    missing = _("not recorded")
    before, after = difference.before or missing, difference.after or missing
    return _("{fact} {before} → {after}", fact=fact_title(difference.name), before=before, after=after)


def hook(confirmation: Confirmation | None, lang: Lang = "en") -> str:
    """Return a small JSON object for a chat hook and for scripts.

    `alert` is true only for a confirmed regression; `text` is one sentence for people.
    """
    return json.dumps(_hook(confirmation, lang), indent=1, ensure_ascii=False) + "\n"


def _hook(confirmation: Confirmation | None, lang: Lang) -> dict[str, Any]:
    text = translated(sentence(confirmation), lang)
    if confirmation is None:
        return {"schema": SCHEMA, "status": "nothing", "alert": False, "text": text}
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
        "text": text,
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


def junit(confirmation: Confirmation | None, lang: Lang = "en") -> str:
    """Return JUnit XML: a confirmed regression fails, what is undecided is skipped with its reason.

    Without a suspected change it is a suite without test cases.
    """
    suite = ElementTree.Element("testsuite", name=SUITE)
    if confirmation is not None:
        suite.append(_case(confirmation, lang))
    counts = {
        "tests": str(len(suite)),
        "failures": str(len(suite.findall("testcase/failure"))),
        "errors": "0",
        "skipped": str(len(suite.findall("testcase/skipped"))),
        "time": f"{confirmation.seconds if confirmation else 0:.3f}",
    }
    suite.attrib.update(counts)
    root = ElementTree.Element("testsuites", {"name": "trainmark", **counts})
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(confirmation: Confirmation, lang: Lang) -> ElementTree.Element:
    name, seconds = one_line(confirmation.case), f"{confirmation.seconds:.3f}"
    case = ElementTree.Element("testcase", classname=SUITE, name=name, time=seconds)
    message = one_line(translated(sentence(confirmation), lang))
    if confirmation.verdict is ABVerdict.SLOWER:
        ElementTree.SubElement(case, "failure", type="regression", message=message)
    if confirmation.verdict is ABVerdict.UNDECIDED:
        ElementTree.SubElement(case, "skipped", message=message)
    ElementTree.SubElement(case, "system-out").text = visible(
        "\n".join(terminal.lines(watch_page(confirmation).blocks, lang))
    )
    return case
