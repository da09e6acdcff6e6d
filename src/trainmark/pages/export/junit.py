"""JUnit XML, the form in which CI systems read test results: one test case for each case of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

from trainmark.base.text import one_line, visible
from trainmark.measure.comparison import ResultComparison
from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.measure.result import result_verdict
from trainmark.pages import number
from trainmark.pages.export.source import ExportedRun, Skipped
from trainmark.pages.run.answer import doubts_verdict, verdict_sentence
from trainmark.store.report import results_of
from trainmark.store.trial import TrialRecord

FILE = "junit.xml"


def write(source: ExportedRun, folder: Path) -> Sequence[Skipped]:
    results = {result.key: result for result in results_of(source.records)}
    cases: dict[str, list[TrialRecord]] = {}
    for record in source.records:
        cases.setdefault(record.spec.case, []).append(record)
    suite = ElementTree.Element("testsuite", name=one_line(source.info.suite))
    for case, records in cases.items():
        suite.append(_case(source, case, records, results, source.slower))
    for case, reason in source.info.skipped:
        ElementTree.SubElement(_named(suite, source, case, 0.0), "skipped", message=one_line(reason))
    created = datetime.fromtimestamp(source.info.created, timezone.utc)
    counts = {
        "tests": str(len(suite)),
        "failures": str(len(suite.findall("testcase/failure/.."))),
        "errors": "0",
        "skipped": str(len(suite.findall("testcase/skipped"))),
        "time": f"{sum(record.seconds for record in source.records):.3f}",
    }
    suite.attrib.update({**counts, "timestamp": created.isoformat(timespec="seconds")})
    if hostname := source.fact("host", "hostname"):
        suite.set("hostname", one_line(str(hostname)))
    root = ElementTree.Element("testsuites", {"name": "trainmark", **counts})
    root.append(suite)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    document = f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'
    (folder / FILE).write_text(document, encoding="utf-8")
    return ()


def _case(
    source: ExportedRun,
    case: str,
    records: Sequence[TrialRecord],
    results: Mapping[Key, Result],
    slower: Mapping[Key, ResultComparison],
) -> ElementTree.Element:
    element = _named(None, source, case, sum(record.seconds for record in records))
    failed = [record for record in records if record.figure is None]
    if failed:
        message = f"{len(failed)} of {number.counted(len(records), 'trial')} failed: {failed[0].detail}"
        details = "\n".join(f"{each.spec.repeat:02d} {each.outcome}: {each.detail}" for each in failed)
        _failure(element, failed[0].outcome, message, details)
    result = results.get(records[0].key)
    if result and result.doubts:
        properties = ElementTree.SubElement(element, "properties")
        codes = ",".join(doubt.code.value for doubt in result.doubts)
        ElementTree.SubElement(properties, "property", name="doubts", value=codes)
        verdict = one_line(verdict_sentence(result_verdict(result)))
        ElementTree.SubElement(properties, "property", name="verdict", value=verdict)
    comparison = slower.get(records[0].key)
    if comparison and any(comparison.unreliable) and not failed:
        message = one_line(f"cannot be judged: {_slower(comparison)}")
        ElementTree.SubElement(element, "skipped", message=message)
    elif comparison and not any(comparison.unreliable):
        _failure(element, "regression", _slower(comparison), "")
    if result:
        ElementTree.SubElement(element, "system-out").text = _figure(result)
    return element


def _named(
    parent: ElementTree.Element | None, source: ExportedRun, case: str, seconds: float
) -> ElementTree.Element:
    attributes = {
        "classname": one_line(source.info.suite),
        "name": one_line(case),
        "time": f"{seconds:.3f}",
    }
    if parent is None:
        return ElementTree.Element("testcase", attributes)
    return ElementTree.SubElement(parent, "testcase", attributes)


def _failure(element: ElementTree.Element, kind: str, message: str, details: str) -> None:
    failure = ElementTree.SubElement(element, "failure", type=kind, message=one_line(message))
    failure.text = visible(details) or None


def _slower(comparison: ResultComparison) -> str:
    before, after = comparison.before, comparison.after
    bounds = number.ratio_interval(comparison.ratio.interval)
    doubts = [
        f". {side}: {verdict}"
        for side, result in (("The baseline", before), ("This run", after))
        if (verdict := doubts_verdict(result))
    ]
    return (
        f"×{comparison.ratio.value:.3f} {bounds} of the baseline: {number.throughput(after.throughput)} "
        f"instead of {number.throughput(before.throughput)} {after.unit}/s{''.join(doubts)}"
    )


def _figure(result: Result) -> str:
    """`6,154.7 images/s [6,130, 6,173] n=6`, and a line for each doubt."""
    figure = f"{number.throughput(result.throughput)} {result.unit}/s {number.interval(result.interval)}"
    doubts = [f"! {doubt.code.value}: {doubt.message}" for doubt in result.doubts]
    return "\n".join(one_line(line) for line in (f"{figure} n={result.n}", *doubts))
