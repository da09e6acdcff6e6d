"""Bisections and confirmations in English and Chinese: the same lines, the same values, nothing left over."""

from __future__ import annotations

import json
import re

import pytest
from bisect_documents import SKIPS, bisections, confirmation, confirmations, step, versions

from trainmark.base.typed_json import encode
from trainmark.measure.bisection import ChangeSide
from trainmark.pages import watch
from trainmark.pages.bisect import bisect_page
from trainmark.runner.bisect.state import BisectionFolder, BisectState
from trainmark.runner.watch import SAME_PROGRAM
from trainmark.store.files import write_json
from trainmark.view import html, markdown, terminal
from trainmark.view.catalogue import translated, with_messages

FIGURES = re.compile(r"×?\d[\d.,:]*\d|\[|\]")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def lines(bisection, lang):
    return terminal.lines(bisect_page(bisection).blocks, lang)


@pytest.mark.parametrize("name", bisections())
def test_a_bisection_has_the_same_lines_and_figures_in_both_languages(name):
    english, chinese = (lines(bisections()[name], lang) for lang in ("en", "zh"))
    assert len(english) == len(chinese)
    for ours, theirs in zip(english, chinese, strict=True):
        assert sorted(FIGURES.findall(ours)) == sorted(FIGURES.findall(theirs))


@pytest.mark.parametrize("name", bisections())
def test_markdown_and_page_of_a_bisection_have_the_same_shape_in_both_languages(name):
    bisection = bisections()[name]
    english, chinese = (markdown.render(bisect_page(bisection), lang) for lang in ("en", "zh"))
    assert english.count("\n") == chinese.count("\n")
    pages = [html.render(bisect_page(bisection), lang) for lang in ("en", "zh")]
    assert len({len(re.findall(r"<(?!tspan)\w+", shown)) for shown in pages}) == 1
    assert 'lang="zh-Hans"' in pages[1]


@pytest.mark.parametrize("name", bisections())
def test_no_english_sentence_is_left_in_a_chinese_bisection(name):
    shown = list(filter(None, lines(bisections()[name], "zh")))
    assert all(map(CHINESE.search, shown))
    assert not re.search(r"\b(is|of|the|was|it|good|bad|skipped)\b", "\n".join(shown))


@pytest.mark.parametrize("reason", SKIPS)
def test_why_a_step_was_skipped_is_in_chinese_after_it_was_stored(tmp_path, reason):
    folder = BisectionFolder(tmp_path)
    folder.keep(BisectState(steps=(step(3, ChangeSide.SKIPPED, reason),)))
    (stored,) = folder.state.steps
    assert stored.reason == reason
    assert CHINESE.search(translated(stored.reason, "zh"))


def test_a_state_without_its_messages_stays_english(tmp_path):
    write_json(tmp_path / "state.json", encode(BisectState(steps=(step(3, ChangeSide.SKIPPED, SKIPS[0]),))))
    assert translated(BisectionFolder(tmp_path).state.steps[0].reason, "zh") == SKIPS[0]


def test_a_stored_template_that_is_not_ours_is_no_message():
    record = {"text": "a", "template": "{a:>99999999}", "values": {"a": "x"}}
    assert with_messages({"reason": "a", "messages": [record]}) == {"reason": "a"}


def test_the_table_names_the_confidence_that_its_intervals_have():
    assert "90 % interval" in markdown.render(bisect_page(versions()))


@pytest.mark.parametrize("name", confirmations())
def test_a_confirmation_has_the_same_lines_and_figures_in_both_languages(name):
    english, chinese = (
        terminal.lines(watch.watch_page(confirmations()[name]).blocks, lang) for lang in ("en", "zh")
    )
    assert [sorted(FIGURES.findall(line)) for line in english] == [
        sorted(FIGURES.findall(line)) for line in chinese
    ]
    assert all(map(CHINESE.search, chinese))


def test_that_nothing_can_be_compared_is_in_chinese():
    shown = translated(watch.sentence(confirmation(1, 1, SAME_PROGRAM, pairs=0)), "zh")
    assert "machine" not in shown


def test_the_text_for_a_chat_and_for_ci_is_in_the_language_and_the_status_is_not():
    slower = confirmations()["slower"]
    written = json.loads(watch.hook(slower, "zh"))
    assert (written["status"], written["alert"]) == ("regression", True)
    assert written["text"] == translated(watch.sentence(slower), "zh")
    assert written["text"] in watch.junit(slower, "zh")
    assert CHINESE.search(json.loads(watch.hook(None, "zh"))["text"])
