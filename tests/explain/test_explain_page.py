"""Pages of explanations, and the timeline in a real browser that can resolve no host."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from explain_documents import cpu, difference, hostile, refused, resnet50, timeline, two_ranks

from trainmark.explain.difference_page import difference_page, waterfall
from trainmark.explain.explanation import Timeline
from trainmark.explain.page import explanation_page, timeline_block
from trainmark.view import html
from trainmark.view.blocks import Section, Stack, shown_in


def page(explanation, lang="en", trace=""):
    return html.render(explanation_page(explanation, trace), lang)


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MOST_BYTES = 400_000


def test_a_page_of_four_thousand_spans_stays_below_400_kb():
    explanation = resnet50()
    assert len(explanation.timeline.spans) >= 4000
    assert len(page(explanation).encode()) < MOST_BYTES


def test_four_thousand_different_long_names_do_not_make_the_page_large():
    spans = [replace(span, name=f"{number} {'k' * 500}") for number, span in enumerate(timeline().spans)]
    explanation = replace(resnet50(), timeline=Timeline(timeline().steps, tuple(spans)))
    assert len(page(explanation).encode()) < MOST_BYTES


def test_the_timeline_carries_every_span():
    explanation = two_ranks()
    data = timeline_block(explanation.timeline)
    shown, before = set(), 0
    for place in range(0, len(data.spans), 5):
        lane, name, kind, later, length = data.spans[place : place + 5]
        before += later
        shown.add((data.lanes[lane], data.names[name], data.classes[kind][0], before, before + length))
    assert shown == {
        (span.lane, span.name, span.kernel_class, span.start, span.end) for span in explanation.timeline.spans
    }


def test_nothing_is_fetched_and_the_trace_beside_is_linked():
    text = page(resnet50(), trace="trace.json.gz")
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text)
    assert 'href="trace.json.gz"' in text


def test_hostile_names_stay_text_on_the_page():
    text = page(hostile())
    assert "<img" not in text and "\x1b" not in text
    data = re.search(r'id="timeline-data">(.*?)</script>', text)[1]
    assert json.loads(data)["names"][0].startswith("</script>")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_refused_page_has_the_reason_and_neither_bar_nor_table_of_shares(lang):
    text = page(replace(refused(), memory=None), lang)
    assert refused().agreement.refusal in text
    assert 'class="stack"' not in text and 'class="bars"' not in text and 'class="adds-up"' not in text


def test_the_page_speaks_the_language_it_is_in():
    text = page(two_ranks(), "zh")
    assert '<html lang="zh-Hans">' in text
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert len(headings) >= 8 and all(re.search("[\u4e00-\u9fff]", heading) for heading in headings)


def test_the_segments_of_the_step_fill_the_bar():
    sections = [block for block in explanation_page(resnet50()).blocks if isinstance(block, Section)]
    blocks = [block for section in sections for block in shown_in(section.blocks, "html")]
    of_step, of_memory = (block for block in blocks if isinstance(block, Stack))
    for stack in (of_step, of_memory):
        assert sum(segment.width for segment in stack.segments) == pytest.approx(1.0)


def test_each_bar_of_the_waterfall_begins_where_the_one_before_ends():
    first, *changes, last = waterfall(difference())
    level = first.width
    for bar in changes:
        less = bar.look == "k-less"
        assert (bar.start + bar.width if less else bar.start) == pytest.approx(level)
        level = bar.start if less else bar.start + bar.width
    assert level == pytest.approx(last.width)
    assert first.width == pytest.approx(1.0)


def test_an_axis_that_does_not_begin_at_zero_says_so():
    assert "The axis begins at 39.50 ms, not at 0." in html.render(difference_page(difference()))


@pytest.mark.parametrize("explanation", [cpu(), replace(cpu(), timeline=Timeline())])
def test_a_page_without_floors_advice_or_timeline_leaves_them_out(explanation):
    text = page(explanation)
    assert "Advice" not in text and "Time against the floor" not in text and "What if" not in text
    assert ("<canvas" in text) == bool(explanation.timeline.spans)


def opened(text, folder, script=""):
    """The attributes of the page's root after all scripts ran; `script` is what a reader then does."""
    if script:
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        text = text.replace("</body>", f"<script>{script}</script></body>")
    path = folder / "explain.html"
    path.write_text(text, encoding="utf-8")
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-sync", "--disable-component-update", "--virtual-time-budget=10000", "--dump-dom",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}",
    ]  # fmt: skip
    ran = subprocess.run(
        [CHROMIUM, *flags, path.as_uri()],
        capture_output=True, text=True, encoding="utf-8", timeout=120, check=True,
    )  # fmt: skip
    root = re.search(r"<html[^>]*>", ran.stdout)
    assert root, "the browser gave no page back"
    return dict(re.findall(r'data-(\w+)="([^"]*)"', root[0]))


browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")


@browser
@pytest.mark.browser
def test_the_timeline_is_drawn_under_the_policy_of_the_page(tmp_path):
    explanation = hostile()
    assert opened(page(explanation), tmp_path) == {"plots": "0", "errors": "", "timeline": "1"}


@browser
@pytest.mark.browser
def test_keys_wheel_drag_and_pinch_move_and_zoom_the_timeline(tmp_path):
    explanation = two_ranks()
    (from_, to), last = explanation.timeline.steps[0], explanation.timeline.steps[-1][1]
    script = """
      const canvas = document.querySelector("canvas"), root = document.documentElement;
      const box = canvas.getBoundingClientRect();
      const note = (name) => { root.dataset[name] = canvas.dataset.view; };
      const point = (type, id, x, kind) => canvas.dispatchEvent(new PointerEvent(type, {bubbles: true,
        pointerId: id, pointerType: kind, clientX: box.left + x, clientY: box.top + 60}));
      const key = (name) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
      const wheel = (y, ctrl) => canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: y, ctrlKey: ctrl,
        clientX: box.left, bubbles: true, cancelable: true}));
      note("first");
      wheel(-300, false); note("scrolled");
      wheel(-300, true); note("wheeled");
      key("0"); note("all");
      document.querySelector("[data-step='1']").click(); note("stepped");
      point("pointerdown", 1, 300, "mouse"); point("pointermove", 1, 100, "mouse");
      point("pointerup", 1, 100, "mouse"); note("dragged");
      point("pointerdown", 2, 100, "touch"); point("pointerdown", 3, 200, "touch");
      point("pointermove", 3, 400, "touch"); point("pointerup", 2, 100, "touch");
      point("pointerup", 3, 400, "touch"); note("pinched");
      key("."); root.dataset.readout = document.querySelector(".readout").textContent;
    """
    root = opened(page(explanation), tmp_path, script)
    views = {
        name: tuple(map(int, text.split())) for name, text in root.items() if re.fullmatch(r"\d+ \d+", text)
    }
    width = {name: after - before for name, (before, after) in views.items()}
    assert root["errors"] == ""
    assert views["first"] == views["scrolled"] == (from_, to)
    assert views["wheeled"][0] == from_ and width["wheeled"] < 0.6 * width["first"]
    assert views["all"] == (0, last)
    assert views["stepped"] == explanation.timeline.steps[1]
    assert views["dragged"][0] > views["stepped"][0] and width["dragged"] == pytest.approx(
        width["stepped"], abs=2
    )
    assert width["pinched"] == pytest.approx(width["dragged"] / 3, rel=0.02)
    assert re.search(r" · [\d.]+ (?:µs|ms) · start [\d.]+ ms · stream \d+", root["readout"])


@browser
@pytest.mark.browser
def test_a_tap_names_the_span_under_the_finger(tmp_path):
    script = """
      const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
      const where = {clientX: box.left + box.width / 8, clientY: box.top + 64};
      for (const type of ["pointerdown", "pointerup"]) canvas.dispatchEvent(
        new PointerEvent(type, {bubbles: true, pointerId: 1, pointerType: "touch", ...where}));
      document.documentElement.dataset.readout = document.querySelector(".readout").textContent;
    """
    root = opened(page(cpu()), tmp_path, script)
    assert root["errors"] == ""
    assert root["readout"].startswith("aten::convolution_backwardconvolution · 459.3 ms")
