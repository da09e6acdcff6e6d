"""Bisections and confirmations in English and Chinese: the same lines, the same values, nothing left over."""

from __future__ import annotations

import json
import re
from string import Formatter

import pytest
from bisect_documents import SKIPS, bisections, confirmation, confirmations, versions

from trainmark.report.bisect import page
from trainmark.report.bisect import text as bisect_text
from trainmark.report.bisect.words import BISECT_WORDS
from trainmark.report.bisect.words import REASONS as BISECT_REASONS
from trainmark.report.format.words import translated
from trainmark.report.watch import hook, junit
from trainmark.report.watch import text as watch_text
from trainmark.report.watch.words import REASONS as WATCH_REASONS
from trainmark.report.watch.words import WATCH_WORDS
from trainmark.runner.watch import SAME_PROGRAM

FIGURES = re.compile(r"×?\d[\d.,:]*\d|\[|\]")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def fields(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


@pytest.mark.parametrize("pairs", [BISECT_WORDS, WATCH_WORDS])
def test_both_languages_take_the_same_values_in_every_sentence(pairs):
    assert all(fields(english) == fields(chinese) for english, chinese in pairs.values())
    assert all(CHINESE.search(chinese) and not CHINESE.search(english) for english, chinese in pairs.values())


@pytest.mark.parametrize("pairs", [BISECT_REASONS, WATCH_REASONS])
def test_both_languages_take_the_same_values_in_every_reason(pairs):
    assert all(fields(english) == fields(chinese) for english, chinese in pairs)


@pytest.mark.parametrize("name", bisections())
def test_a_bisection_has_the_same_lines_and_figures_in_both_languages(name):
    english, chinese = (bisect_text.lines(bisections()[name], None, lang) for lang in ("en", "zh"))
    assert len(english) == len(chinese)
    for ours, theirs in zip(english, chinese, strict=True):
        assert sorted(FIGURES.findall(ours)) == sorted(FIGURES.findall(theirs))


@pytest.mark.parametrize("name", bisections())
def test_markdown_and_page_of_a_bisection_have_the_same_shape_in_both_languages(name):
    bisection = bisections()[name]
    english, chinese = (bisect_text.markdown(bisection, lang) for lang in ("en", "zh"))
    assert english.count("\n") == chinese.count("\n")
    pages = [page.render(bisection, lang) for lang in ("en", "zh")]
    assert len({len(re.findall(r"<(?!tspan)\w+", shown)) for shown in pages}) == 1
    assert 'lang="zh-Hans"' in pages[1]


@pytest.mark.parametrize("name", bisections())
def test_no_english_sentence_is_left_in_a_chinese_bisection(name):
    shown = list(filter(None, bisect_text.lines(bisections()[name], None, "zh")))
    assert all(map(CHINESE.search, shown))
    assert not re.search(r"\b(is|of|the|was|it|good|bad|skipped)\b", "\n".join(shown))


@pytest.mark.parametrize("reason", SKIPS)
def test_why_a_step_was_skipped_is_in_chinese(reason):
    assert CHINESE.search(translated(reason, "zh", BISECT_REASONS))


def test_the_table_names_the_confidence_that_its_intervals_have():
    assert "90 % interval" in bisect_text.markdown(versions())


@pytest.mark.parametrize("name", confirmations())
def test_a_confirmation_has_the_same_lines_and_figures_in_both_languages(name):
    english, chinese = (watch_text.lines(confirmations()[name], lang) for lang in ("en", "zh"))
    assert [sorted(FIGURES.findall(line)) for line in english] == [
        sorted(FIGURES.findall(line)) for line in chinese
    ]
    assert all(map(CHINESE.search, chinese))


def test_that_nothing_can_be_compared_is_in_chinese():
    shown = watch_text.sentence(confirmation(1, 1, SAME_PROGRAM, pairs=0), "zh")
    assert "machine" not in shown


def test_the_text_for_a_chat_and_for_ci_is_in_the_language_and_the_status_is_not():
    slower = confirmations()["slower"]
    written = json.loads(hook.render(slower, "zh"))
    assert (written["status"], written["alert"]) == ("regression", True)
    assert written["text"] == watch_text.sentence(slower, "zh")
    assert written["text"] in junit.render(slower, "zh")
    assert CHINESE.search(json.loads(hook.render(None, "zh"))["text"])
