"""What an explanation says: the answer first, then where the step goes and what would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trainmark.base.text import one_line
from trainmark.explain import explanation as model
from trainmark.explain import figures, tables
from trainmark.explain.explanation import Explanation
from trainmark.explain.figures import duration
from trainmark.explain.names import cause_name, class_look, class_name, holder_name, look
from trainmark.explain.sentences import (
    about,
    agreement_sentences,
    basis_sentence,
    first_sentence,
    floor_sentence,
    gain_words,
    is_certain,
    memory_sentence,
    other_rate_sentence,
    rate_sentence,
    steps_words,
    subject_line,
    where_sentence,
)
from trainmark.measure.quantity import rate_words
from trainmark.pages import number
from trainmark.view.blocks import (
    Advice,
    Advices,
    BarRow,
    Bars,
    Block,
    Chart,
    Facts,
    Headline,
    Headlines,
    Items,
    Page,
    Section,
    Segment,
    Sentence,
    Span,
    Stack,
    Text,
    Timeline,
    only,
    without,
)
from trainmark.view.chart import model as chart
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Dots, Figure, Line, Mark, Panel, Plot, Whiskers
from trainmark.view.message import Message, _, joined

STYLE = "explain.css"
MOST_EVIDENCE = 4
LEAST_EVIDENT = 0.001  # of the step
ROW = 34
MOST_NAMES_LETTERS = 150_000  # of all names of a timeline together: a page stays below 400 kB
LONGEST_NAME = 240
MOST_SPANS = 8_000
BOUNDS = {"arithmetic": _("arithmetic"), "memory": _("memory"), "link": _("link")}


def explanation_page(explanation: Explanation, trace: str = "") -> Page:
    """`trace` is the name of the Perfetto trace that lies beside the page."""
    return _page(explanation, _blocks(explanation, trace))


def memory_page(explanation: Explanation) -> Page:
    """Return what holds the peak memory alone."""
    return _page(explanation, _memory(explanation))


def _page(explanation: Explanation, blocks: Iterator[Block]) -> Page:
    return Page(explanation.subject.title, list(blocks), about=about(explanation), style=STYLE)


def _blocks(explanation: Explanation, trace: str) -> Iterator[Block]:
    is_refused = explanation.agreement.refusal is not None
    yield from _head(explanation)
    yield from _where(explanation)
    if explanation.advice:
        yield Section(_("Advice"), [_advice(explanation)])
    if not is_refused:
        yield from _idle(explanation)
        yield from _floors(explanation)
    yield from _what_ifs(explanation)
    yield from _timeline(explanation, trace)
    if not is_refused:
        yield from _kernels(explanation)
        yield from _ranks(explanation)
    yield from _memory(explanation)
    yield from _notes(explanation)


def _head(explanation: Explanation) -> Iterator[Block]:
    """Yield what was explained, its step, what keeps it from being relied on, and the first thing to do."""
    refusal, where = explanation.agreement.refusal, where_sentence(explanation)
    rate, idle = figures.samples_per_second(explanation), explanation.idle_nanoseconds
    large = [Headline(duration(explanation.step_seconds), _("a step"), ())]
    if rate:
        large.append(Headline(number.throughput(rate), f"{explanation.subject.unit}/s", ()))
    if explanation.total and refusal is None:
        large.append(Headline(number.percent(idle / explanation.total), _("idle"), ()))
    yield only("html", Headlines(large, _("Main results")))
    for doubt in explanation.doubts:
        yield Sentence(_("Caution: {doubt}", doubt=doubt), "verdict is-caution")
    yield only(
        "terminal", Sentence(joined([subject_line(explanation.subject), steps_words(explanation)], " · "))
    )
    yield only("markdown", Sentence(about(explanation)))
    if refusal is not None:
        yield Sentence(_("No shares: {refusal}", refusal=refusal), "verdict is-caution")
    yield without("html", Sentence(joined([*rate_sentence(explanation), where], " ")))
    is_certain_of = refusal is None and not explanation.doubts
    if where:
        yield only("html", Sentence(where, "verdict is-reliable" if is_certain_of else ""))
    yield only("html", *map(Sentence, other_rate_sentence(explanation)))
    if explanation.advice:
        yield Sentence(first_sentence(explanation))


def _where(explanation: Explanation) -> Iterator[Block]:
    """Yield the table of the step, or in its place that there are no shares."""
    agreement = joined(agreement_sentences(explanation), " ")
    if explanation.agreement.refusal is not None:
        refused = _("No shares are given, for the reason above; the timeline shows what was recorded.")
        yield Section(_("Where a step goes"), [only("html", Sentence(refused)), Sentence(agreement, "note")])
        return
    texts = figures.part_texts(explanation)
    segments = [
        Segment(
            look(part.kind, part.name),
            part.nanoseconds / explanation.total,
            tables.part_name(part, explanation),
            texts[part.kind, part.name][1],
            f"{texts[part.kind, part.name][0]} ms",
        )
        for part in figures.parts(explanation)
        if part.nanoseconds > 0
    ]
    note = _(
        "Each row is the time in which nothing of another class ran; overlap and idle time are rows of their"
        " own, so that the rows add up to the step. FLOP and bytes are of one step."
    )
    floor = floor_sentence(explanation)
    table = replace(tables.step_table(explanation), notes=[*floor, agreement])
    stack = Stack(segments, where_sentence(explanation))
    below = without("terminal", Sentence(note, "note"))
    yield Section(_("Where a step goes"), [only("html", stack), table, below])


def _advice(explanation: Explanation) -> Advices:
    return Advices(
        [
            Advice(
                [own.sentence, Span(gain_words(own), "gain" if is_certain(own) else "gain is-open")],
                own.how,
                own.is_line,
            )
            for own in explanation.advice
        ]
    )


def _idle(explanation: Explanation) -> Iterator[Block]:
    """Yield each cause of idle time with its evidence; a terminal has the times in the table of the step."""
    if not explanation.idle:
        return
    least, facts = LEAST_EVIDENT * explanation.total, []
    for own in tables.idle_by_time(explanation):
        if own.nanoseconds > least:
            name = cause_name(own.cause, explanation.subject.kind)
            facts += [("" if at else name, text) for at, text in enumerate(own.evidence[:MOST_EVIDENCE])]
    title = _("Idle, by cause")
    if facts:
        yield only("terminal", Section(title, [Facts(facts)]))
    yield only("markdown", Section(title, [tables.idle_table(explanation)]))
    yield only("html", Section(title, [tables.idle_table(explanation, is_below=True)]))


def _floors(explanation: Explanation) -> Iterator[Block]:
    """Yield the time of each class that has a floor, the longest first."""
    known = sorted((own for own in explanation.classes if own.floor), key=lambda own: -own.busy)
    steps = max(1, explanation.steps) * figures.MILLISECOND
    longest = max((max(own.busy, own.floor or 0) for own in known), default=1)
    bars = []
    for own in known:
        floor = own.floor or 0
        times = {
            "time": number.significant(own.busy / steps, 3),
            "floor": number.significant(floor / steps, 3),
        }
        note = _("{time} ms, floor {floor} ms", **times)
        if own.bound:
            note = _("{times} ({bound})", times=note, bound=BOUNDS.get(own.bound, own.bound))
        solid = min(1.0, floor / own.busy) if own.busy else 0.0
        text: list[Text] = [f"{figures.times_floor_text(own, 2)} ×", Span(note, "sub")]
        bars.append(BarRow(class_name(own.name), class_look(own.name), 0.0, own.busy / longest, text, solid))
    if bars:
        title, note = (
            _("Time against the floor"),
            _(
                "The solid part of a bar is the floor; the pale part is what a better kernel, layout or"
                " precision could win back at most."
            ),
        )
        yield only("html", Section(title, [Bars(bars, title), Sentence(note, "note")]))


def _what_ifs(explanation: Explanation) -> Iterator[Block]:
    if not explanation.what_ifs:
        return
    note = _(
        "A prediction is the step that a change would give, with the interval that verified predictions"
        " support; “verified” is the step with the change really made."
    )
    basis, title = basis_sentence(explanation), _("What if")
    listed = replace(tables.what_if_table(explanation), notes=basis)
    reasons = [
        _("{title}: {reason}", title=change.title, reason=change.why) for change in explanation.what_ifs
    ]
    drawn = replace(tables.what_if_table(explanation, has_reasons=True), notes=basis)
    shown = [
        only("terminal", listed),
        only("markdown", listed, Sentence(note), Items(reasons)),
        only("html", Chart(what_if_plot(explanation), note), drawn),
    ]
    yield Section(title, shown)


def what_if_plot(explanation: Explanation) -> Plot:
    """The step that each change would give, with its interval; what was verified as a ring."""
    changes, now = explanation.what_ifs, 1000 * explanation.step_seconds
    places = [float(place) for place in range(len(changes))]
    bounds = [(1000 * change.low, 1000 * change.high) for change in changes]
    verified = [
        (place, 1000 * change.verified.seconds)
        for place, change in zip(places, changes, strict=True)
        if change.verified
    ]
    low, high = [pair[0] for pair in bounds], [pair[1] for pair in bounds]
    texts = [
        _(
            "{title}: {time} ms {bounds}",
            title=change.title,
            time=number.significant(1000 * change.seconds, 4),
            bounds=number.bounds(*pair),
        )
        for change, pair in zip(changes, bounds, strict=True)
    ]
    marks: list[Mark] = [
        Line("muted", x=[now, now], y=[-0.5, len(changes) - 0.5], dash=True),
        Whiskers("t0", at=places, low=low, high=high, flat=True, width=5),
        Dots("t0", x=[1000 * change.seconds for change in changes], y=places, texts=texts, radius=4),
    ]
    key: list[tuple[str, str]] = [
        ("muted", _("step {time} ms", time=number.significant(now, 4))),
        ("t0", _("predicted")),
    ]
    if verified:
        made, at = [value for _place, value in verified], [place for place, _value in verified]
        texts = [_("verified {time} ms", time=number.significant(value, 4)) for value in made]
        marks.append(Dots("t1", x=made, y=at, texts=texts, shape="ring", radius=6))
        key.append(("t1", _("verified")))
    across = linear([now, *low, *high, *(value for _place, value in verified)], _("ms a step"))
    panel = Panel(rows([change.title for change in changes]), marks, ROW * len(changes))
    return Plot("what_if", [Figure("", {"": chart.Chart(across, [panel], key)})])


def _timeline(explanation: Explanation, trace: str) -> Iterator[Block]:
    block, shown = timeline_block(explanation.timeline), list[Block]()
    if block is not None:
        keys = _(
            "Drag to move, pinch or use the buttons to zoom, tap a span for its name; with Ctrl or after a"
            " click the wheel zooms too. Keys: ← → move, + − zoom, 0 shows all, comma and full stop go to the"
            " previous and the next span."
        )
        thinned = explanation.timeline.thinned
        left_out = _("{count} spans too short to draw are left out.", count=f"{thinned:,}")
        shown += [block, Sentence(joined([keys, left_out], " ") if thinned else keys, "note")]
    if trace:
        opened = _(
            "The whole trace is in {name}: open it with Perfetto (ui.perfetto.dev).",
            name=trace,
        )
        shown.append(Sentence(Span(opened, link=trace)))
    if block is not None:
        spans = tables.spans_table(explanation)
        shown.append(Section(_("The {count} longest spans", count=len(spans.rows)), [spans], folded=True))
    if shown:
        yield only("html", Section(_("Timeline"), shown))


def timeline_block(timeline: model.Timeline) -> Timeline | None:
    """Return lanes, names and classes by number, and of each span their numbers; None without a span."""
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
    classes = _numbered(name for name, _time in busy.most_common())
    longest = min(LONGEST_NAME, max(24, MOST_NAMES_LETTERS // len(names)))
    flat: list[int] = []
    before = 0
    for span in sorted(spans, key=lambda span: (lanes[span.lane], span.start, span.end)):
        flat += (lanes[span.lane], names[span.name], classes[span.kernel_class])
        # Counted from the span before, because small numbers are short.
        flat += (span.start - before, span.end - span.start)
        before = span.start
    label = _(
        "Timeline of {steps} steps, {spans} spans in {lanes} lanes; the table below lists the longest",
        steps=len(timeline.steps),
        spans=len(timeline.spans),
        lanes=len({span.lane for span in timeline.spans}),
    )
    return Timeline(
        [_cut(lane, 60) for lane in lanes],
        [_cut(name, longest) for name in names],
        [(class_name(name), class_look(name)) for name in classes],
        timeline.steps,
        flat,
        label,
    )


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def _cut(text: str, longest: int) -> str:
    line = one_line(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _kernels(explanation: Explanation) -> Iterator[Block]:
    """Yield the longest kernels, in HTML all of them by class, and the modules."""
    kernels = tables.kernels_table(explanation)
    if kernels.rows:
        few = replace(kernels, most={"terminal": 5, "markdown": 15})
        yield without("html", Section(_("Longest kernels"), [few]))
    texts, by_class = figures.part_texts(explanation), list[Block]()
    for part in figures.parts(explanation):
        if part.of_class and part.of_class.kernels:
            swatch = Span("", f"swatch {class_look(part.name)} paint")
            title: list[Text] = [swatch, class_name(part.name), Span(texts[part.kind, part.name][1], "sub")]
            table = tables.class_kernels_table(explanation, part.of_class)
            by_class.append(Section(title, [table], folded=True))
    if by_class:
        yield only("html", Section(_("Kernels"), by_class))
    if explanation.modules:
        narrow = replace(tables.modules_table(explanation, tables.LONGEST_MODULE), most={"terminal": 10})
        whole = replace(tables.modules_table(explanation), most={"markdown": 30})
        both = [only("terminal", narrow), without("terminal", whole)]
        yield Section(tables.modules_title(explanation), both)


def _ranks(explanation: Explanation) -> Iterator[Block]:
    if explanation.ranks:
        note = _(
            "In ms a step. Exposed is communication during which nothing was computed; “waited for” is how"
            " long the other ranks waited for this one."
        )
        yield Section(_("Ranks"), [replace(tables.ranks_table(explanation), notes=[note])])
    if explanation.buckets:
        link = explanation.peaks.link
        notes = [_("The slowest link of the ranks carries {link}.", link=rate_words(link))] if link else []
        buckets = replace(tables.buckets_table(explanation), most={"terminal": 16}, notes=notes)
        yield Section(_("Collectives"), [buckets])


def _memory(explanation: Explanation) -> Iterator[Block]:
    memory = explanation.memory
    if memory is None:
        return
    peak = memory_sentence(memory)
    shown: list[Block] = [Sentence(peak, "caption"), only("html", Stack(_held(memory), peak, "low"))]
    if memory.parts:
        shown.append(tables.memory_table(explanation))
    if memory.suggestions:
        shown.append(Items(memory.suggestions))
    yield Section(_("Memory"), shown)


def _held(memory: model.Memory) -> list[Segment]:
    whole = sum(part.bytes for part in memory.parts)
    kinds = list(dict.fromkeys(part.kind for part in memory.parts))
    return [
        Segment(
            f"k-{kinds.index(part.kind) % 9}",
            part.bytes / whole,
            joined(list(filter(None, (holder_name(part.kind), part.name))), " "),
            number.percent(part.bytes / whole),
            f"{number.significant(part.bytes / number.GIB, 3)} GiB",
        )
        for part in sorted(memory.parts, key=lambda part: -part.bytes)
        if part.bytes > 0
    ]


def _notes(explanation: Explanation) -> Iterator[Block]:
    """Yield the notes; HTML has with them what holds for every explanation."""
    notes: Sequence[str] = explanation.notes
    if notes:
        yield without("html", Section(_("Notes"), [Items(notes)]))
    method: list[Message] = []
    if explanation.agreement.measured is not None:
        method.append(
            _("The profiled steps come after the measured ones: the profiler never ran among them.")
        )
    method.append(
        _(
            "Where the profiled step differs by more than 3 % from the one timed without the profiler, or"
            " records were lost, no share is given."
        )
    )
    shown: list[Block] = [Items([*notes, *method])]
    if explanation.facts:
        shown.append(Section(_("What was explained"), [Facts(list(explanation.facts.items()))]))
    yield only("html", Section(_("What holds for these figures"), shown))
