"""The difference of two explanations for a terminal and as Markdown."""

from __future__ import annotations

from trainmark.explain.difference import Contribution, ExplanationDifference
from trainmark.explain.report.figures import apportioned, decimals_of, signed_percent
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import cause_name, class_name, explain_words
from trainmark.explain.report.sentences import duration, subject_line
from trainmark.explain.report.terminal import note_lines
from trainmark.pages import number
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.view.markup import plain
from trainmark.view.terminal import wrapped

MINUS = "−"
PICOSECOND = 1e-12


def lines(difference: ExplanationDifference, width: int | None = None, lang: Lang = "en") -> list[str]:
    t = explain_words(lang)
    return [
        *wrapped(f"A: {subject_line(difference.a, lang)}", width),
        *wrapped(f"B: {subject_line(difference.b, lang)}", width),
        *(line for text in sentences(difference, lang) for line in wrapped(text, width)),
        "",
        f"{t['difference_where']} ({unit(difference, lang)})",
        *table(difference, lang).lines(width),
        *note_lines(difference.notes, width, lang),
    ]


def markdown(difference: ExplanationDifference, lang: Lang = "en") -> str:
    t = explain_words(lang)
    parts = [
        f"# {t['difference_title'].format(a='A', b='B')}",
        f"- A: {plain(subject_line(difference.a, lang))}\n- B: {plain(subject_line(difference.b, lang))}",
        *map(plain, sentences(difference, lang)),
        f"## {t['difference_where']} ({unit(difference, lang)})",
        table(difference, lang).markdown(),
    ]
    if difference.notes:
        parts += [
            f"## {t['notes']}",
            "\n".join(f"- {plain(sentence(note, lang))}" for note in difference.notes),
        ]
    return "\n\n".join(parts) + "\n"


def sentences(difference: ExplanationDifference, lang: Lang) -> list[str]:
    """The two times, their difference, and the contribution that makes up most of it."""
    t, change = explain_words(lang), difference.seconds_b - difference.seconds_a
    first = t["difference_step" if difference.per == "step" else "difference_sample"].format(
        before=duration(difference.seconds_a),
        after=duration(difference.seconds_b),
        change=signed_duration(change),
        percent=signed_percent(change / difference.seconds_a if difference.seconds_a else None),
    )
    alike = [own for own in difference.contributions if own.change * change > 0]
    if not alike:
        return [first]
    most = max(alike, key=lambda own: abs(own.change))
    name = contribution_name(most, lang)
    return [first, t["difference_most"].format(name=name, change=signed_duration(most.change))]


def table(difference: ExplanationDifference, lang: Lang = "en") -> Table:
    """Every contribution, the largest change first; the last row is their sum."""
    t, (_, scale) = explain_words(lang), _unit(difference)
    ordered = by_change(difference)
    whole = difference.seconds_b - difference.seconds_a
    decimals = decimals_of(max(difference.seconds_a, difference.seconds_b) / scale)
    columns = [
        apportioned([round(value / PICOSECOND) for value in values], scale / PICOSECOND, decimals)
        for values in (
            [own.seconds_a for own in ordered],
            [own.seconds_b for own in ordered],
            [own.change for own in ordered],
        )
    ]
    rows = [
        [
            contribution_name(own, lang),
            before.replace("-", MINUS),
            after.replace("-", MINUS),
            _sign(change),
            _share(own.change, whole),
        ]
        for own, before, after, change in zip(ordered, *columns, strict=True)
    ]
    sums = [f"{value / scale:,.{decimals}f}" for value in (difference.seconds_a, difference.seconds_b, whole)]
    rows.append(
        [t["sum"] if difference.per == "step" else "", *sums[:2], _sign(sums[2]), _share(whole, whole)]
    )
    header = [t["part"], "A", "B", t["change_column"], t["of_difference"]]
    return Table(header, rows, frozenset({1, 2, 3, 4}))


def by_change(difference: ExplanationDifference) -> list[Contribution]:
    return sorted(difference.contributions, key=lambda own: (-abs(own.change), own.name))


def contribution_name(own: Contribution, lang: Lang) -> str:
    t = explain_words(lang)
    if own.kind == "idle":
        return t["idle_row"].format(cause=cause_name(own.name, lang))
    if own.kind == "overlap":
        return t["overlap_join"].join(class_name(name.strip(), lang) for name in own.name.split("+"))
    return t["rest"] if own.kind == "rest" else class_name(own.name, lang)


def unit(difference: ExplanationDifference, lang: Lang) -> str:
    return explain_words(lang)[_unit(difference)[0]]


def unit_sign(difference: ExplanationDifference) -> str:
    return "ms" if difference.per == "step" else "µs"


def signed_duration(seconds: float) -> str:
    sign = "+" if seconds > 0 else MINUS if seconds < 0 else "±"
    return sign + duration(abs(seconds))


def _unit(difference: ExplanationDifference) -> tuple[str, float]:
    return ("unit_ms", 1e-3) if difference.per == "step" else ("unit_us", 1e-6)


def _sign(text: str) -> str:
    if text.startswith("-"):
        return MINUS + text[1:] if text.strip("-0.,") else text[1:]
    return f"+{text}" if text.strip("0.,") else text


def _share(change: float, whole: float) -> str:
    return number.percent(change / whole, 0).replace("-", MINUS) if whole else ""
