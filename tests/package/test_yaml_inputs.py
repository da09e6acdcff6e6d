"""Every kind of YAML file that a user writes is read by one entry, which answers odd YAML with a sentence."""

from __future__ import annotations

import pytest

from trainmark.base import yaml_source
from trainmark.base.errors import UserError
from trainmark.launch.hosts import from_inventory
from trainmark.logs.format_file import custom_format
from trainmark.logs.ledger import load
from trainmark.suite.load import load as load_suite
from trainmark.suite.load import parse

READERS = {
    "suite": lambda path: load_suite(str(path)),
    "override": lambda path: parse("name: x", "x.yaml", [f"about={path.read_text()}"]),
    "inventory": from_inventory,
    "ledger": load,
    "format": custom_format,
}
TRAPS = {
    "bool": "!!bool maybe",
    "int": "!!int ''",
    "float": "!!float ''",
    "timestamp": "!!timestamp nope",
    "binary": "!!binary aGk=",
    "set": "!!set {a}",
    "pairs": "!!pairs [a: 1]",
    "object": "!!python/object/apply:os.system [ls]",
    "key": "{[a]: 1}",
    "tagged key": "{!!str [a]: 1}",
    "depth": "[" * 3000,
    "closed depth": "{a: " * 3000 + "}" * 3000,
    "cycle": "&a [*a, *a]",
    "merged cycle": "&a {<<: *a}",
    "merge": "{<<: 5}",
    "digits": "9" * 5000,
    "hexadecimal": "0x" + "f" * 5000,
    "sexagesimal": "1" + ":1" * 5000,
    "nul": '"\\0"',
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("trap", TRAPS)
def test_odd_yaml_is_refused_with_its_line(tmp_path, reader, trap):
    path = tmp_path / "mine.yaml"
    path.write_text(TRAPS[trap] if reader == "override" else f"name: x\nnodes: {TRAPS[trap]}\n")
    with pytest.raises(UserError) as refused:
        READERS[reader](path)
    where = f"--set about={TRAPS[trap]}:1: " if reader == "override" else "mine.yaml:2: "
    assert where in str(refused.value)


def test_composing_stops_at_the_most_values_that_may_be_used(monkeypatch):
    monkeypatch.setattr(yaml_source, "MOST_VALUES", 100)
    with pytest.raises(UserError, match="more than 100 values"):
        yaml_source.read("[" + "1," * 200 + "\n: this is no YAML", "mine.yaml")
