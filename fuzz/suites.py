"""Malformed suites, overrides, inventories, ledgers, own formats and host files, down to the plan."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import Case, fuzz

from trainmark.base.errors import UserError
from trainmark.launch.hosts import from_hostfile, from_inventory, from_list
from trainmark.logs.format_file import custom_format
from trainmark.logs.ledger.entry import as_record
from trainmark.logs.ledger.load import DATA
from trainmark.logs.ledger.load import load as load_ledger
from trainmark.logs.read import read_runs
from trainmark.pages.ledger import ledger_page
from trainmark.suite.load import BUILT_IN, parse
from trainmark.suite.model import Topology
from trainmark.suite.plan import Resources, plan
from trainmark.view import terminal

WRITTEN = r"""
!!bool maybe
!!int ''
!!float ''
!!timestamp nope
!!binary aGk=
!!set {a}
!!omap [a: 1]
!!python/name:os.system
!local x
{[a]: 1}
{? {a: b} : c}
[[[]]]
{}
[]
''
~
null
true
-1
0
1
1.5
.nan
.inf
-.inf
1e400
9999999999999999999999
1:30:30
0b
2020-13-45
2020-01-01
text
*a
&a [*a]
&b x
<<
=
powers-of-two
all
auto
8n8g
0n0g
99999999n1g
±0.5%
100%
2h
99999h
[1, 2, 3]
[amp, [fp32]]
{steps: 1}
{steps: {}}
{command: x}
{command: [x]}
{command: x, pattern: '('}
{command: x, pattern: 'a{99999999999}'}
(?P<loss>x)
'(?P<rate>.*)*'
步
"""
VALUES = (
    *WRITTEN.strip().splitlines(),
    *("'a\tb'", r'"\0"', r'"\ud800"', r'"\x1b[31m"', "", "\u202e", "\ufeff", "x" * 3000),
    *("0x" + "f" * 70, "9" * 60, "9" * 5000, "[" * 60 + "]" * 60, "[" * 3000, "{a: " * 200),
)
KEY_WORDS = """
precision topology cases name seed measure workload environment limits repeats nodes defaults
devices slots labels source tables rows columns shared errata step rate clock settings steps_a_line
<< 1 yes 步
"""
KEYS = (*KEY_WORDS.split(), "? [a]", r"'\0'", "x" * 300, "")
CHARACTERS = "[]{}:,-?!&*#|>'\"%@`\t\n \r\0\x1b\x85\u2028\ufeff\ud800ü步"
INVENTORY = """defaults: {python: python3}
nodes:
  - a
  - {name: b, devices: 2, labels: [x]}
  - name: c
    slots: 3
"""
FORMAT = r"""name: mine
step: 'step (?P<step>\d+) took (?P<ms>[\d.]+) ms'
rate: {unit: images, scope: global, kind: instant}
clock: unix
settings:
  batch_per_device: 'batch=(?P<value>\d+)'
  world_size: 4
"""
HOSTFILE = "node1 slots=8\nnode2:4\n# remark\nuser@node3\n"
SUITES = [path.read_text(encoding="utf-8") for path in sorted(BUILT_IN.glob("*.yaml"))]
LEDGERS = [path.read_text(encoding="utf-8")[:4000] for path in sorted(DATA.glob("*.yaml"))]
LOG = b"batch=32\n" + b"".join(b"step %d took 250.0 ms\n" % n for n in range(1, 20))
MACHINES = (Resources("cpu", 1, cores=4), Resources("cuda", 8), Resources("cuda", 8, nodes=4))


def make(rng: random.Random, number: int) -> Case:
    kind = rng.choice(("suite", "suite", "suite", "override", "inventory", "ledger", "format", "hostfile"))
    base = {"suite": rng.choice(SUITES), "override": rng.choice(SUITES), "inventory": INVENTORY,
            "ledger": rng.choice(LEDGERS), "format": FORMAT, "hostfile": HOSTFILE}[kind]  # fmt: skip
    text = base if kind == "override" else malformed(rng, base)
    machine = rng.choice(MACHINES)
    overrides = [f"{rng.choice(KEYS)}{rng.choice(('', '.steps', '.'))}={rng.choice(VALUES)}"]
    checks: dict[str, Callable[[Path], object]] = {
        "suite": lambda path: planned(text, [], machine),
        "override": lambda path: planned(text, overrides, machine),
        "inventory": from_inventory,
        "ledger": lambda path: terminal.render(ledger_page([*map(shown, load_ledger(path))])),
        "format": formatted,
        "hostfile": lambda path: (from_hostfile(path), from_list(text)),
    }
    return Case(
        f"{kind}: {(overrides if kind == 'override' else text)!r}"[:3000], lambda: check(checks[kind], text)
    )


def check(read: Callable[[Path], object], text: str) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mine.yaml")
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            read(path)
        except UserError as error:
            sentence = str(error)
            if not sentence.strip() or "\n" in sentence.strip() or len(sentence) > 10_000:
                return f"not one sentence: {sentence[:500]!r}"
    return None


def planned(text: str, overrides: list[str], machine: Resources) -> None:
    suite = parse(text, "mine.yaml", overrides, Topology(1, 8), "/tmp")
    made = plan(suite, machine)
    for trial in made.certain()[:50]:
        str(trial.id)
    again = parse(suite.text, "again.yaml", (), Topology(1, 8), "/tmp")
    assert [case.slug for case in again.cases] == [case.slug for case in suite.cases]


def shown(entry: object) -> object:
    as_record(entry)  # type: ignore[arg-type]
    return entry


def formatted(path: Path) -> None:
    for run in read_runs(custom_format(path), [LOG], "x.log"):
        run.facts()
        run.columns()


def malformed(rng: random.Random, text: str) -> str:
    """The text with some of its values, keys, lines or characters changed."""
    for _ in range(rng.randint(1, 3)):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        choice = rng.randrange(9)
        if choice <= 2 and colon:
            lines[at] = f"{key}: {rng.choice(VALUES)}"
        elif choice == 3:
            indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
            lines.insert(at, f"{indent}{rng.choice(KEYS)}: {rng.choice(VALUES)}")
        elif choice == 4:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif choice == 5:
            lines[at] = " " * rng.randrange(6) + lines[at].lstrip()
        elif choice == 6:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + rng.choice(CHARACTERS) + lines[at][place:]
        elif choice == 7:
            del lines[at:]
        else:
            lines[at] = (
                lines[at].replace(" 1", f" {rng.choice(VALUES)}").replace("[", f"[{rng.choice(VALUES)}, ", 1)
            )
        text = "\n".join(lines)
    return text


if __name__ == "__main__":
    planned(SUITES[0], [], MACHINES[0])
    fuzz("suites", 10_000, make)
