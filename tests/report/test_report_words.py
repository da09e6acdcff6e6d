import re
from string import Formatter

from trainmark.measure.doubt import DoubtCode
from trainmark.report.format import words
from trainmark.report.sections.environment import sections
from trainmark.visible import visible


def test_both_languages_take_the_same_values_in_every_sentence():
    def fields(text):
        return sorted(name for _, name, _, _ in Formatter().parse(text) if name)

    assert {name: fields(en) for name, (en, _) in words.WORDS.items()} == {
        name: fields(zh) for name, (_, zh) in words.WORDS.items()
    }


def test_no_word_is_empty_in_either_language():
    assert all(en and zh for en, zh in (*words.WORDS.values(), *words.OUTCOMES.values()))


def test_every_doubt_has_a_chinese_name_of_its_own():
    assert set(words.DOUBTS_ZH) == set(DoubtCode)
    assert len(set(words.DOUBTS_ZH.values())) == len(DoubtCode)


def test_sentences_in_chinese_are_in_chinese():
    sentences = [zh for name, (_, zh) in words.WORDS.items() if name.startswith("method")]
    assert all(re.search("[\u4e00-\u9fff]", sentence) for sentence in sentences)


def test_hidden_characters_are_written_out():
    assert visible("a\x1b[0m\u202eb\ud800\tc\n") == "a\\x1b[0m\\u202eb\\ud800\tc\n"


def test_devices_that_are_alike_are_told_once():
    (section,) = sections({"devices": [{"index": 0, "name": "H200"}, {"index": 1, "name": "H200"}]})
    assert section.facts == (("count", 2), ("name", "H200"))
    assert section.tables[0].rows == ((0,), (1,))


def test_a_section_that_was_not_found_is_still_listed():
    (section,) = sections({"container": None})
    assert section.facts == (("", None),)
