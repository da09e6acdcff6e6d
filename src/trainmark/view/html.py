"""Blocks as one HTML file that needs no network, or as a part of a page that has our style."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from trainmark.base.files import home
from trainmark.base.text import one_line, visible
from trainmark.view.blocks import (
    Answer,
    Bar,
    Block,
    DoubtMark,
    Doubts,
    Drawing,
    Headlines,
    LargeTable,
    Page,
    Section,
    Sentence,
    Span,
    Text,
    Timeline,
    shown_in,
)
from trainmark.view.catalogue import Lang, localized
from trainmark.view.chart import svg
from trainmark.view.chart.model import shape, tone
from trainmark.view.frame import embedded, frame
from trainmark.view.message import Message, _

# What stands in the header of a page where it comes first.
HEAD = (Answer, Headlines, Sentence, Doubts)
TIMELINE = "timeline-data"
LOADERS = (PackageLoader("trainmark.view", "templates"),)


def render(page: Page, lang: Lang = "en", style: str = "") -> str:
    """Return the page; `style` names a further style sheet."""
    shown = shown_in(page.blocks, "html")
    head = list(takewhile(lambda block: isinstance(block, HEAD), shown))
    data = Markup("").join(_data(block, lang) for block in shown)
    script = "timeline.js" if TIMELINE in data else ""
    return (
        environment(lang)
        .get_template("page.html.j2")
        .render(
            **frame(style or page.style, script),
            page=localized(replace(page, blocks=()), lang),
            lede=fragment(head, lang),
            main=fragment(shown[len(head) :], lang),
            data=data,
        )
    )


def notebook(page: Page, lang: Lang = "en") -> str:
    """Return the page in a frame of its own, so that its style and scripts are its alone."""
    grow = "this.style.height = this.contentDocument.documentElement.scrollHeight + 24 + 'px'"
    return Markup(
        '<iframe srcdoc="{}" onload="{}" style="border: 0; width: 100%; height: 480px"></iframe>'
    ).format(render(page, lang), grow)


def fragment(
    blocks: Sequence[Block], lang: Lang = "en", level: int = 2, env: Environment | None = None
) -> Markup:
    """Return blocks for a page that has the frame; sections get headings of this level and below.

    A frame that draws charts or bars in its own way gives its `env`.
    """
    return _blocks(localized(shown_in(blocks, "html"), lang), env or environment(lang), level)


def _blocks(blocks: Sequence[Block], env: Environment, level: int) -> Markup:
    return Markup("\n").join(_block(block, env, level) for block in shown_in(blocks, "html"))


def _block(block: Block, env: Environment, level: int) -> Markup:
    """Render by the macro that has the block's name."""
    macro = getattr(env.get_template("blocks.html.j2").module, type(block).__name__)
    inside = Markup()
    if isinstance(block, Section):
        inside = _blocks(block.blocks, env, level + bool(block.title))
    return Markup(macro(block, inside, level))


def _data(block: Block, lang: Lang) -> Markup:
    """Return the data from which a page's scripts make rows and draw."""
    if isinstance(block, Section):
        return Markup("").join(_data(inner, lang) for inner in shown_in(block.blocks, "html"))
    if isinstance(block, LargeTable):
        return _embedded(f"{block.name}-rows", block.data)
    return _embedded(TIMELINE, _timeline_data(block, lang)) if isinstance(block, Timeline) else Markup()


def _timeline_data(block: Timeline, lang: Lang) -> dict[str, Any]:
    words = {
        "step_number": _("step {number}", number="{number}"),
        "start": _("start"),
    }
    return {
        "lanes": block.lanes,
        "names": block.names,
        "classes": localized(block.classes, lang),
        "steps": block.steps,
        "spans": block.spans,
        "words": localized(words, lang),
    }


def _embedded(name: str, data: object) -> Markup:
    opening = Markup('<script type="application/json" id="{}">').format(name)
    return opening + Markup(embedded(data)) + Markup("</script>")


@cache
def environment(lang: Lang) -> Environment:
    """Escapes everything; a name that a template misspells is an error, not an empty string."""
    env = Environment(
        loader=LOADERS[0],
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=CompiledTemplates(),
    )
    env.globals.update(
        lang=lang,
        inline=partial(inline, lang=lang),
        _=lambda text, **values: localized(Message(text, **values), lang),
    )
    env.filters.update(
        one_line=one_line,
        visible=visible,
        localized=lambda value: localized(value, lang),
        svg=lambda chart, title: Markup(svg.render(chart, title, lang)),
        chart_height=svg.height,
        series_look=lambda index: f"{tone(index)} {shape(index)}",
    )
    return env


def inline(text: Text, lang: Lang = "en") -> Markup:
    if text is None:
        return Markup()
    if isinstance(text, (str, int, float)):
        return escape(one_line(str(text)))
    if isinstance(text, Drawing):
        return Markup(text.draw(lang))
    if isinstance(text, Bar):
        widths = ((look, max(0.0, min(1.0, width))) for look, width in text.parts if width > 0)
        inside = Markup("").join(
            Markup('<i class="{}" style="width: {:.4g}%"></i>').format(look, 100 * width)
            for look, width in widths
        )
        return Markup('<span class="{}" aria-hidden="true">{}</span>').format(text.look, inside)
    if isinstance(text, DoubtMark):
        return Markup('<span class="mark-of is-{}" title="{}">{}</span>').format(
            text.severity, text.name, text.number
        )
    if isinstance(text, Span):
        return _span(text, lang)
    return Markup(" ").join(filter(None, (inline(piece, lang) for piece in text)))


def _span(span: Span, lang: Lang) -> Markup:
    content = inline(span.text, lang)
    if span.look in ("code", "strong"):
        content = Markup("<{0}>{1}</{0}>").format(span.look, content)
    elif span.look:
        content = Markup('<span class="{}">{}</span>').format(span.look, content)
    return Markup('<a href="{}">{}</a>').format(span.link, content) if span.link else content


class CompiledTemplates(FileSystemBytecodeCache):
    """Templates as compiled by an earlier report; where they cannot be written, each report compiles them."""

    def __init__(self) -> None:
        super().__init__(str(home() / "templates"))

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
