import dataclasses
import re
from string import Formatter

from trainmark.base.text import visible
from trainmark.machine.devices import Device, Devices
from trainmark.machine.environment import Environment, Git
from trainmark.machine.host import Cpu, Host, NumaNode, RunningContainer
from trainmark.machine.network import InfinibandPort, Interface, MachineFabric
from trainmark.machine.software import InstalledLibrary, Libraries
from trainmark.measure.doubts import SENTENCES, Doubt, DoubtCode, Severity
from trainmark.measure.key import Key
from trainmark.pages.facts import KNOWN, fact_name
from trainmark.pages.label import IN_TABLE
from trainmark.report.format import doubt_words, published_words, words
from trainmark.report.sections.environment import sections

CODES = {code.value for code in DoubtCode}


def fields(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name)


def test_both_languages_take_the_same_values_in_every_sentence():
    assert {name: fields(en) for name, (en, _) in words.WORDS.items()} == {
        name: fields(zh) for name, (_, zh) in words.WORDS.items()
    }


def test_no_word_is_empty_in_either_language():
    assert all(en and zh for en, zh in (*words.WORDS.values(), *words.OUTCOMES.values()))


def test_every_doubt_has_a_clause_and_a_chinese_name_of_its_own():
    assert len({code.clause for code in DoubtCode}) == len(DoubtCode)
    assert len({doubt_words.doubt_name(code, "zh") for code in DoubtCode} - CODES) == len(DoubtCode)
    assert {doubt_words.severity_name(severity, "zh") for severity in Severity} == {"严重", "注意", "提示"}


def test_every_sentence_of_a_doubt_takes_the_same_values_in_chinese():
    for name, english in SENTENCES.items():
        assert set(fields(doubt_words.SENTENCES_ZH[name])) == set(fields(english)), name


def test_a_doubt_that_an_earlier_version_stored_is_shown_in_english():
    assert (
        doubt_words.doubt_sentence(Doubt(DoubtCode.HOST_BUSY, "The host was busy."), "zh")
        == "The host was busy."
    )


def test_the_phrases_about_published_results_are_the_same_in_both_languages():
    theirs, ours = published_words.CHINESE.phrases, published_words.ENGLISH.phrases
    assert {name: sorted(fields(text)) for name, text in theirs.items()} == {
        name: sorted(fields(text)) for name, text in ours.items()
    }


def test_every_field_of_an_environment_and_of_a_key_has_a_chinese_name():
    records = (
        *(
            Cpu,
            NumaNode,
            Host,
            Device,
            Devices,
            InfinibandPort,
            Interface,
            MachineFabric,
            InstalledLibrary,
            Libraries,
        ),
        *(Git, RunningContainer, Environment),
    )
    names = {field.name for record in records for field in dataclasses.fields(record)}
    names |= {name for name in Key("").values() if name not in IN_TABLE}
    same = {"cpu", "ecc", "gpu", "gpus", "infiniband", "python", "turbo", "uuid", "nccl", "cuda"}
    assert {name for name in names if fact_name(name) not in KNOWN} - same == set()


def test_sentences_in_chinese_are_in_chinese():
    sentences = [zh for name, (_, zh) in words.WORDS.items() if name.startswith("method")]
    assert all(re.search("[\u4e00-\u9fff]", sentence) for sentence in sentences)


def test_hidden_characters_are_written_out():
    assert visible("a\x1b[0m\u202eb\ud800\tc\n") == "a\\x1b[0m\\u202eb\\ud800\tc\n"


def test_devices_that_are_alike_are_told_once():
    (section,) = sections({"devices": [{"index": 0, "name": "H200"}, {"index": 1, "name": "H200"}]})
    assert section.facts == (("count", 2), ("name", "H200"))
    assert section.tables[0].rows == ((0,), (1,))


def test_a_section_that_is_missing_is_still_listed():
    (section,) = sections({"container": None})
    assert section.missing == ("",)
    assert not section.is_known


def test_facts_are_named_in_chinese_and_bytes_are_in_gibibytes():
    (section,) = sections({"host": {"cpu": {"model": "Neoverse-N1"}, "memory_bytes": 2**34}}, "zh")
    assert section.known == (("CPU 型号", "Neoverse-N1"), ("内存", "16.0 GiB"))
