"""The timeline for the page: columns of small integers that templates/assets/timeline.js draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trainmark.base.text import one_line
from trainmark.explain.explanation import Explanation
from trainmark.explain.report.language.words import class_name, explain_words
from trainmark.explain.report.look import look
from trainmark.report.format.words import Lang

MOST_NAMES_LETTERS = 150_000  # of all names together: a page stays below 400 kB
LONGEST_NAME = 240
MOST_SPANS = 8_000


def timeline_data(explanation: Explanation, lang: Lang) -> dict[str, object] | None:
    """Return lanes, names and classes by number, and of each span their numbers, its start and its length.

    Starts are counted from the span before, because small numbers are short; None where nothing is to draw.
    """
    timeline, t = explanation.timeline, explain_words(lang)
    spans = timeline.spans
    if len(spans) > MOST_SPANS:
        spans = tuple(sorted(spans, key=lambda span: span.start - span.end)[:MOST_SPANS])
    if not spans:
        return None
    # Streams of one kind stand together, in the order in which they are first used.
    lanes = _numbered(span.lane for span in sorted(spans, key=lambda span: span.start))
    names = _numbered(span.name for span in spans)
    busy = Counter[str]()
    for span in spans:
        busy[span.kernel_class] += span.end - span.start
    classes = _numbered(name for name, _ in busy.most_common())
    ordered = sorted(spans, key=lambda span: (lanes[span.lane], span.start, span.end))
    longest = min(LONGEST_NAME, max(24, MOST_NAMES_LETTERS // len(names)))
    flat: list[int] = []
    before = 0
    for span in ordered:
        flat += (
            lanes[span.lane],
            names[span.name],
            classes[span.kernel_class],
            span.start - before,
            span.end - span.start,
        )
        before = span.start
    return {
        "lanes": [_cut(lane, 60) for lane in lanes],
        "names": [_cut(name, longest) for name in names],
        "classes": [[class_name(name, lang), look(name)] for name in classes],
        "steps": [list(step) for step in timeline.steps],
        "spans": flat,
        "words": {name: t[name] for name in ("step_number", "start", "duration", "lane")},
    }


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def _cut(text: str, longest: int) -> str:
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
