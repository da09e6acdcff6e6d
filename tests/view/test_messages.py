"""Messages are English texts that any language can be made from; none is left without Chinese."""

import ast
import copy
import json
import pickle
import re
from pathlib import Path
from string import Formatter

import pytest

import trainmark
from trainmark.measure.doubts import SENTENCES
from trainmark.view import html, markdown, terminal
from trainmark.view.blocks import Page, Sentence, Table
from trainmark.view.catalogue import catalogue, entries, localized, translated
from trainmark.view.message import Message, _, _n, joined

PACKAGE = Path(trainmark.__file__).parent
PAGE = Page(_("throughput"), [Sentence(_("throughput")), Table([_("throughput")], [["throughput"]])])


def messages(file: Path) -> set[str]:
    """Every text that a module or template marks as one to translate."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".j2":
        return set(re.findall(r'\b_\("([^"]+)"[,)]', text))
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("_", "_n"):
            arguments = node.args[:1] if node.func.id == "_" else node.args[1:3]
            found |= {each.value for each in arguments if isinstance(each, ast.Constant)}
    return found


USED = set(SENTENCES.values()).union(*map(messages, (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.j2"))))


def placeholders(text: str) -> set[str]:
    return {name for _text, name, *_rest in Formatter().parse(text) if name is not None}


def test_a_message_is_its_english_text():
    message = _("{rows} rows from {sources} sources.", rows=3, sources=2)
    assert message == "3 rows from 2 sources."
    assert json.dumps([message]) == '["3 rows from 2 sources."]'
    assert {message: 1}["3 rows from 2 sources."] == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_of_a_message_can_be_translated_too(copied):
    message = copied(_("{rows} rows from {sources} sources.", rows=3, sources=2))
    assert translated(message, "zh") == "共 3 行，来自 2 个来源。"


def test_values_are_translated_and_plain_text_is_not():
    inner = _("{rows} rows from {sources} sources.", rows=_("throughput"), sources="throughput")
    assert translated(inner, "zh") == "共吞吐量行，来自 throughput 个来源。"
    assert translated("throughput", "zh") == "throughput"


def test_what_the_catalogue_lacks_stays_english_with_its_values():
    assert translated(Message("no such {text}", text=_("throughput")), "zh") == "no such 吞吐量"


def test_a_value_with_braces_is_no_template():
    message = _("{rows} rows from {sources} sources.", rows="{x}", sources="{0}")
    assert translated(message, "zh").count("{") == 2


def test_one_thing_is_counted_without_an_s():
    assert _n(1, "1 pair", "{count} pairs") == "1 pair"
    assert _n(1234, "1 pair", "{count} pairs") == "1,234 pairs"


def test_parts_are_joined_as_the_language_joins_them():
    text = joined([_("throughput"), "a"], _("date"))
    assert (text, translated(text, "zh")) == ("throughputdatea", "吞吐量日期a")
    assert joined([], ", ") == ""


def test_english_blocks_are_not_copied():
    assert localized(PAGE, "en") is PAGE


@pytest.mark.parametrize("render", [terminal.render, markdown.render, html.render])
def test_a_renderer_translates_messages_and_leaves_data_alone(render):
    chinese = render(PAGE, "zh")
    assert chinese.count("throughput") == 1
    assert "吞吐量" in chinese and "吞吐量" not in render(PAGE, "en")


def test_a_catalogue_entry_may_go_over_several_lines():
    text = '# a comment\nmsgid ""\n"one "\n"two"\nmsgstr "eins "\n"\\"zwei\\"\\n"\n\nmsgid "x"\nmsgstr ""\n'
    assert list(entries(text)) == [("", ""), ("one two", 'eins "zwei"\n'), ("x", "")]


def test_every_message_of_the_package_has_chinese():
    assert USED - catalogue("zh").keys() == set()


def test_every_entry_of_the_catalogue_is_used_and_names_the_same_values():
    assert catalogue("zh").keys() - USED == set()
    differing = {en for en, zh in catalogue("zh").items() if not placeholders(zh) <= placeholders(en)}
    assert differing == set()
