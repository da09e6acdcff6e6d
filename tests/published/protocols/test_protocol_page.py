"""docs/protocols.md names what there is, and nothing else."""

import re
from pathlib import Path

from trainmark.audit import protocols
from trainmark.audit.protocols.defects import DEFECTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "protocols.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.M)


def test_every_protocol_is_in_the_table_and_no_other():
    assert sorted(first_cells(section("The protocols"))) == sorted(protocols.names())


def test_the_table_says_the_usual_windows():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (?:(\d+), (\d+)|–) \|", section("The protocols"), re.M)
    for name, warmup, train in rows:
        window = protocols.get(name).window
        assert (window and (window.warmup, window.train)) == (
            (int(warmup), int(train)) if warmup else None
        ), name
    assert len(rows) == len(protocols.names())


def test_every_doubt_is_in_the_table_and_no_other():
    sources = (ROOT / "src" / "trainmark" / "audit" / "protocols").rglob("*.py")
    raised = {
        code
        for path in sources
        for code in re.findall(r'ProtocolDoubt\(\s*"([a-z-]+)"', path.read_text(encoding="utf-8"))
    }
    assert sorted(first_cells(section("Where they go wrong"))) == sorted(raised | set(DEFECTS))
