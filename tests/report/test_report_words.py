import dataclasses

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
from trainmark.pages.run.environment import environment_part
from trainmark.view.catalogue import catalogue, translated


def test_every_doubt_has_a_clause_and_a_chinese_name_of_its_own():
    assert len({code.clause for code in DoubtCode}) == len(DoubtCode)
    names = {translated(code.label, "zh") for code in DoubtCode}
    assert len(names - {code.value for code in DoubtCode}) == len(DoubtCode)
    assert {translated(severity.label, "zh") for severity in Severity} == {"严重", "注意", "提示"}


def test_every_sentence_of_a_doubt_is_there_in_chinese():
    assert set(SENTENCES.values()) <= set(catalogue("zh"))


def test_a_doubt_that_an_earlier_version_stored_is_shown_in_english():
    stored = Doubt(DoubtCode.HOST_BUSY, "The host was busy.")
    assert translated(stored.text, "zh") == "The host was busy."


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


def test_hidden_characters_are_written_out():
    assert visible("a\x1b[0m\u202eb\ud800\tc\n") == "a\\x1b[0m\\u202eb\\ud800\tc\n"


def test_devices_that_are_alike_are_named_once():
    part = environment_part("devices", [{"index": 0, "name": "H200"}, {"index": 1, "name": "H200"}])
    assert part.facts == [("count", "2"), ("name", "H200")]
    assert part.tables[0].rows == [["0"], ["1"]]


def test_a_section_that_is_missing_is_still_listed():
    part = environment_part("container", None)
    assert part.missing == [""]
    assert not part.is_known


def test_facts_are_named_in_chinese_and_bytes_are_in_gibibytes():
    part = environment_part("host", {"cpu": {"model": "Neoverse-N1"}, "memory_bytes": 2**34})
    shown = [(translated(name, "zh"), value) for name, value in part.facts]
    assert shown == [("CPU 型号", "Neoverse-N1"), ("内存", "16.0 GiB")]
