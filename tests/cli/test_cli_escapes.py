"""Escape sequences in names, units, keys, paths and arguments are shown by every command, not obeyed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.base.text import HIDDEN
from trainmark.cli import terminal
from trainmark.cli.progress import Progress

# A colour, a window title, a colour in C1, a reordering, a byte that is not UTF-8, DEL, a carriage return.
EVIL = "\x1b[31m\x1b]0;pwn\x07\x9b31m\u202e\udcff\x7f\r"
STORED = EVIL.replace("\udcff", "")  # DuckDB takes no halves of surrogate pairs
RUN, TRIAL = f"evil{EVIL}", "pytorch-fp32-b32-1n1g/01"
POISONED_KEYS = {
    "about",
    "command",
    "detail",
    "device",
    "framework_version",
    "hostname",
    "message",
    "name",
    "unit",
}
POISONED_KEYS |= {"reason", "retries", "skipped", "suite"}


def poisoned(value, key=None, poison=STORED):
    """The record with the characters in every text that a stranger may have written."""
    if isinstance(value, dict):
        return {name: poisoned(inner, name, poison) for name, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner, key, poison) for inner in value]
    return value + poison if isinstance(value, str) and key in POISONED_KEYS else value


@pytest.fixture
def evil(runs, tmp_path) -> None:
    for file in (runs / "before").rglob("*.json"):
        file.write_text(json.dumps(poisoned(json.loads(file.read_text()))))
    for file in (runs / "before").rglob("rank0.log"):
        file.write_text(f"a log {EVIL}\n", errors="surrogateescape")
    (runs / "before").rename(runs / RUN)
    written = {
        "key.yaml": f"{json.dumps('batch' + EVIL)}: 3\n",
        "value.yaml": f"workload: {{command: 'true'}}\nprecision: {json.dumps(EVIL)}\n",
        "parser.yaml": f"workload: [{EVIL}\n",
        f"name{EVIL}.yaml": "nonsense: 1\n",
        "plan.yaml": f"workload: {{command: {json.dumps('echo ' + EVIL)}}}\nname: {json.dumps('n' + EVIL)}\n",
        "train.log": f"step 1 {EVIL}\n",
        f"train{EVIL}.log": "nothing to read\n",
        "report.md": f"| case {EVIL} | images/s |\n|---|---|\n| {EVIL} | 100 |\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text, errors="surrogateescape")
    images = tmp_path / f"set{EVIL}"
    images.mkdir()
    (images / "dataset.json").write_text(json.dumps({"format" + EVIL: EVIL, "format": "folder" + EVIL}))


COMMANDS = [
    ("list",),
    ("list", "--json"),
    ("list", "--runs", f"none{EVIL}"),
    ("show", RUN),
    ("show", RUN, "--json"),
    ("show", RUN, TRIAL),
    ("show", RUN, TRIAL, "--json"),
    ("show", RUN, f"gone{EVIL}"),
    ("show", f"gone{EVIL}"),
    ("query", "SELECT * FROM trials"),
    ("query", "SELECT * FROM trials", "--json"),
    ("query", f"SELECT '{EVIL.replace(chr(0xDCFF), '')}' AS \"x\x1b[31m\""),
    ("query", "SELEC \x1b[31m"),
    ("query", f"SELECT '{EVIL}'"),
    *(("report", RUN, "--format", kind) for kind in ("md", "json", "csv", "text")),
    ("compare", RUN, "after"),
    ("compare", RUN, "after", "--json"),
    ("export", "dlperf", RUN, "--out", f"out{EVIL}"),
    ("run", "key.yaml"),
    ("run", "value.yaml"),
    ("run", "parser.yaml"),
    ("run", f"name{EVIL}.yaml"),
    ("run", f"gone{EVIL}.yaml"),
    ("run", "plan.yaml", "--dry-run"),
    ("run", "quick", "--set", f"a{EVIL}=1"),
    ("run", "--resume", f"gone{EVIL}"),
    ("data", "verify", f"set{EVIL}"),
    ("data", "verify", f"set{EVIL}", "--json"),
    ("data", "verify", f"gone{EVIL}"),
    ("read", "train.log"),
    ("read", f"train{EVIL}.log"),
    ("audit", "report.md"),
    ("audit", f"gone{EVIL}.md"),
    ("suites", "show", f"gone{EVIL}"),
    ("frameworks", "install", f"gone{EVIL}"),
    ("doctor", "--ports", EVIL),
    ("ledger", "--framework", EVIL),
    ("forecast", RUN),
    (f"list{EVIL}",),
    (f"--option{EVIL}",),
    ("list", f"more{EVIL}"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words).partition("\x1b")[0])
@pytest.mark.usefixtures("evil")
def test_no_control_character_is_printed(trainmark, words):
    result = trainmark(*words)
    assert result.code in (0, 1, 2), result.err
    assert result.out + result.err
    assert HIDDEN.findall(result.out + result.err) == []
    if "--json" in words and result.out:
        json.loads(result.out)


@pytest.mark.parametrize("words", [("list",), ("show",), ("show", "after", TRIAL), ("report", "after")])
def test_half_a_surrogate_pair_in_a_record_is_shown(trainmark, runs, words):
    for file in (runs / "after").rglob("*.json"):
        file.write_text(json.dumps(poisoned(json.loads(file.read_text()), poison="\ud800")))
    result = trainmark(*words, *(("--format", "text") if "report" in words else ()))
    assert (result.code, HIDDEN.findall(result.out + result.err)) == (0, [])


def test_json_still_means_the_characters(trainmark, runs):
    info = runs / "before" / "run.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "name": RUN}))
    assert [run["name"] for run in json.loads(trainmark("list", "--json").out)] == ["failed", RUN, "after"]
    shown = "evil\\x1b[31m\\x1b]0;pwn\\x07\\x9b31m\\u202e\\udcff\\x7f\\x0d"
    assert shown in trainmark("list").out


def test_a_name_of_two_lines_takes_one_line_of_the_list(trainmark, runs):
    info = runs / "before" / "run.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "name": "a\nb"}))
    assert [line.split("  ")[0] for line in trainmark("list").out.splitlines()] == [
        "run",
        "failed",
        "a b",
        "after",
    ]


def test_notes_of_a_run_pass_the_same_output(capsys):
    with terminal.visible_output():
        Progress().note(f"crashed: {EVIL}")
    stderr = capsys.readouterr().err
    assert stderr.startswith("crashed: ")
    assert HIDDEN.findall(stderr) == []


def test_a_console_escapes_the_text_and_keeps_its_own_colours(monkeypatch):
    from rich.text import Text

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    console = terminal.console(force_terminal=True, color_system="standard")
    console.print(Text(f"a{EVIL}", style="bold"))
    assert sys.stdout.getvalue().startswith("\x1b[1ma\\u001b[31m\\u001b]0;pwn")
    assert set(HIDDEN.findall(sys.stdout.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", ""))) == set()


def test_output_to_a_locale_without_the_characters_is_escaped_not_refused(capsys, monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", narrow)
    with terminal.visible_output():
        print("×7 — 图")
    narrow.flush()
    assert narrow.buffer.getvalue() == "×7 \\u2014 \\u56fe\n".encode("latin-1")


def test_a_closed_output_is_no_file_s_number(tmp_path):
    """A file that is opened next must not take the place of the closed standard output."""
    program = (
        "import os, sys; os.close(1); sys.stdout = None\n"
        "from trainmark.cli.terminal import visible_output\n"
        "with visible_output(): print('lost', file=sys.stdout); os._exit(os.open('x', os.O_CREAT))\n"
    )
    source = Path(terminal.__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment)
    assert done.returncode >= 3
