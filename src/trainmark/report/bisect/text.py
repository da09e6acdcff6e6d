"""A bisection in words: the culprit, the size of the change, every step and what it cost."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmark.base.text import one_line
from trainmark.measure.bisection import Bisection, BisectionFinding, PairedMeasurement
from trainmark.report.bisect.words import BISECT_WORDS, REASONS, bisect_words
from trainmark.report.format.markup import plain
from trainmark.report.format.number import MISSING, clock
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, translated

COLUMNS = ("step", "tried", "is", "ratio", "interval", "pairs", "trials", "time", "why")
NUMBERS = frozenset({0, 3, 4, 5, 6, 7})
SETTINGS = "settings"
MARKS = ("as_in_suite", "unset")
LONGEST_NAME = 60
NEEDLESS_SPACE = re.compile("(?<=[\u4e00-\u9fff）]) (?=[\u4e00-\u9fff])")


@dataclass(frozen=True)
class BisectionText:
    """The sentences and the table of a bisection in one language."""

    bisection: Bisection
    lang: Lang = "en"

    @property
    def words(self) -> dict[str, str]:
        return bisect_words(self.lang)

    def say(self, name: str, **values: object) -> str:
        return NEEDLESS_SPACE.sub("", self.words[name].format(**values))

    def counted(self, count: int, noun: str) -> str:
        """`1 pair`, `1,234 pairs`."""
        return self.words[noun] if count == 1 else self.say(f"{noun}s", count=f"{count:,}")

    def name(self, name: str) -> str:
        """Return the name of an item; that of a whole side, and what stands for no value, in the language."""
        if self.bisection.kind != SETTINGS:
            return name
        if name in ("good", "bad"):
            return self.words[f"{name}_side"]
        for mark in MARKS:
            name = name.replace(BISECT_WORDS[mark][0], self.words[mark])
        return name

    def reason(self, text: str) -> str:
        return self.name(translated(text, self.lang, REASONS))

    @property
    def title(self) -> str:
        subject = self.words[SETTINGS] if self.bisection.kind == SETTINGS else self.bisection.subject
        return self.say("title", subject=subject, case=self.bisection.case)

    @property
    def confidence(self) -> str:
        return f"{100 * (1 - self.bisection.error):.3g} %"

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        bisection, whole = self.bisection, self._whole()
        if bisection.finding is BisectionFinding.NO_CHANGE:
            return self.say("no_change", whole=whole, matters=_percent(bisection.matters))
        if bisection.finding is BisectionFinding.UNDECIDED:
            pairs = self.counted(len(bisection.reference.pairs), "pair")
            return self.say("undecided", pairs=pairs, whole=whole)
        names = ", ".join(map(self.name, bisection.culprits))
        change = bisection.confirmation
        assert change is not None
        if bisection.finding is BisectionFinding.UNCONFIRMED:
            return self.say("unconfirmed", names=names, first=self.name(change.first), ratio=ratio(change))
        effect = self.say("effect", ratio=ratio(change), first=self.name(change.first))
        if bisection.finding is BisectionFinding.NARROWED:
            return self.say("narrowed", names=names, effect=effect)
        if bisection.kind == SETTINGS and len(bisection.culprits) > 1:
            return self.say("together", names=names, effect=effect)
        return self.say(f"found_{bisection.kind}", names=names, effect=effect)

    def _whole(self) -> str:
        reference = self.bisection.reference
        first, second = self.name(reference.first), self.name(reference.second)
        return self.say("whole", second=second, ratio=ratio(reference), first=first)

    def _share(self) -> str | None:
        """Say how much of the whole change the culprit makes, where it is clearly not all of it."""
        share = self.bisection.share
        if (
            share is None
            or self.bisection.kind == SETTINGS
            or self.bisection.finding is not BisectionFinding.FOUND
        ):
            return None
        if share < 0.7:
            return self.say("part", share=_percent(share), whole=self._whole())
        return self.say("all", whole=self._whole())

    def _tried(self) -> str | None:
        """Say how many items were passed over, which is what a bisection is for."""
        if self.bisection.kind == SETTINGS:
            return None
        tried = len({step.items for step in self.bisection.steps}) + 2
        return self.say(f"tried_{self.bisection.kind}", tried=tried, count=f"{len(self.bisection.names):,}")

    def _cost(self) -> str:
        bisection = self.bisection
        preparation = self.words["no_preparation"]
        if bisection.preparation >= 1:
            preparation = self.say("preparation", time=clock(bisection.preparation))
        steps = self.counted(len(bisection.steps), "step")
        if skipped := sum(step.side.value == "skipped" for step in bisection.steps):
            steps = self.say("skipped_steps", steps=steps, skipped=skipped)
        trials = self.counted(bisection.trials, "trial")
        time = clock(bisection.seconds)
        return self.say("cost", trials=trials, time=time, preparation=preparation, steps=steps)

    def _method(self) -> str:
        bisection = self.bisection
        first, error = self.name(bisection.reference.first), _percent(bisection.error)
        return self.say("method", first=first, error=error, unit=bisection.unit)

    @property
    def sentences(self) -> list[str]:
        """The sentences below the headline."""
        notes = map(self.reason, self.bisection.notes)
        parts = [self._share(), *notes, self._tried(), self._cost(), self._method()]
        return [part for part in parts if part]

    @property
    def steps_table(self) -> Table:
        """A row for each comparison, in the order in which they were made."""
        bisection, change = self.bisection, self.bisection.confirmation
        rows = [self._row("", bisection.reference.second, "reference", bisection.reference, "")]
        rows += [
            self._row(str(number), step.name, step.side.value, step.measured, self.reason(step.reason))
            for number, step in enumerate(bisection.steps, 1)
        ]
        if change is not None and not _repeated(bisection, change):
            beside = self.say("beside", first=self.name(change.first))
            rows.append(self._row("", change.second, "culprit", change, beside))
        header = [self.say(f"{column}_column", confidence=self.confidence) for column in COLUMNS]
        return Table(header, rows, NUMBERS)

    def _row(
        self, number: str, name: str, side: str, measured: PairedMeasurement | None, reason: str
    ) -> list[str]:
        about = [number, _short(self.name(name)), self.words[side]]
        if measured is None:
            return [*about, "", "", "", "", "", reason]
        figures = [f"×{measured.ratio:.3f}", bounds(measured), str(len(measured.pairs))]
        return [*about, *figures, str(measured.trials), clock(measured.seconds), reason]


def _repeated(bisection: Bisection, change: PairedMeasurement) -> bool:
    """Whether a row of the table already has this comparison."""
    return change.run in {
        bisection.reference.run,
        *(step.measured.run for step in bisection.steps if step.measured),
    }


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def ratio(measured: PairedMeasurement) -> str:
    return f"×{measured.ratio:.3f} {bounds(measured)}"


def bounds(measured: PairedMeasurement) -> str:
    if measured.low is None and measured.high is None:
        return MISSING
    low, high = (MISSING if bound is None else f"{bound:.3f}" for bound in (measured.low, measured.high))
    return f"[{low}, {high}]"


def lines(bisection: Bisection, width: int | None = None, lang: Lang = "en") -> list[str]:
    """Return the report for a terminal."""
    text = BisectionText(bisection, lang)
    below = [one_line(sentence) for sentence in text.sentences]
    return [one_line(text.headline), "", *text.steps_table.lines(width), "", *below]


def markdown(bisection: Bisection, lang: Lang = "en") -> str:
    text = BisectionText(bisection, lang)
    items = "\n".join(f"- {plain(one_line(sentence))}" for sentence in text.sentences)
    title, headline = plain(one_line(text.title)), plain(one_line(text.headline))
    command = f"\n```text\n{one_line(bisection.command)}\n```\n" if bisection.command else ""
    return f"# {title}\n\n{headline}\n{command}\n{text.steps_table.markdown()}\n\n{items}\n"
