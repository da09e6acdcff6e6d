"""A confirmation as JUnit XML: a confirmed regression fails, what is undecided is skipped with its reason."""

from __future__ import annotations

from xml.etree import ElementTree

from trainmark.base.text import one_line, visible
from trainmark.measure.ab import ABVerdict, Confirmation
from trainmark.report.format.words import Lang
from trainmark.report.watch.text import lines, sentence

SUITE = "trainmark watch"


def render(confirmation: Confirmation | None, lang: Lang = "en") -> str:
    """Return the document; without a suspected change a suite without test cases."""
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
    message = one_line(sentence(confirmation, lang))
    if confirmation.verdict is ABVerdict.SLOWER:
        ElementTree.SubElement(case, "failure", type="regression", message=message)
    if confirmation.verdict is ABVerdict.UNDECIDED:
        ElementTree.SubElement(case, "skipped", message=message)
    ElementTree.SubElement(case, "system-out").text = visible("\n".join(lines(confirmation, lang)))
    return case
