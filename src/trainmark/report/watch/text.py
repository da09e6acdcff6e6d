"""A confirmation in the terminal."""

from __future__ import annotations

from trainmark.base.text import one_line
from trainmark.measure.ab import Confirmation, FactDifference
from trainmark.report.format.label import rate_unit
from trainmark.report.format.number import throughput
from trainmark.report.format.words import Lang, translated
from trainmark.report.history.cells import named
from trainmark.report.watch.words import REASONS, watch_words


def sentence(confirmation: Confirmation, lang: Lang = "en") -> str:
    """Return the answer in one sentence, with the size, its interval and what it rests on."""
    w, judgement = watch_words(lang), confirmation.judgement
    certainty = w["certainty_one" if judgement.pairs == 1 else "certainty"]
    return w[confirmation.verdict.value].format(
        case=confirmation.case,
        before=confirmation.before,
        after=confirmation.after,
        share=f"{confirmation.matters:.2%}".replace(".00", "").replace("%", " %"),
        size=ratio(confirmation, lang),
        certainty=certainty.format(pairs=f"{judgement.pairs:,}", error=f"{judgement.error:.2g}"),
        reason=one_line(translated(confirmation.reason, lang, REASONS)),
    )


def ratio(confirmation: Confirmation, lang: Lang = "en") -> str:
    """`×0.970 [0.962, 0.976]`."""
    w, judgement = watch_words(lang), confirmation.judgement
    if not confirmation.pairs:
        return w["no_pair"]
    if judgement.low <= 0:
        return f"×{judgement.ratio:.3f} [{w['no_interval']}]"
    return f"×{judgement.ratio:.3f} [{judgement.low:.3f}, {judgement.high:.3f}]"


def lines(confirmation: Confirmation, lang: Lang = "en") -> list[str]:
    """Return the answer, the two levels, and the facts that the sides differ in."""
    w, written = watch_words(lang), [sentence(confirmation, lang)]
    if levels := confirmation.levels:
        before, after = map(throughput, levels)
        unit = rate_unit(confirmation.unit)
        written.append(w["medians"].format(before=before, after=after, unit=unit))
    for label, remade in (("differs", True), ("not_put_back", False)):
        written += [
            w[label].format(difference=fact_line(difference, lang))
            for difference in confirmation.differences
            if difference.remade is remade
        ]
    if confirmation.folder:
        written.append(w["folder"].format(folder=confirmation.folder))
    return [one_line(line) for line in written]


def fact_line(difference: FactDifference, lang: Lang = "en") -> str:
    missing = watch_words(lang)["not_recorded"]
    return f"{named(difference.name, lang)} {difference.before or missing} → {difference.after or missing}"
