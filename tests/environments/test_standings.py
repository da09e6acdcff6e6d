"""The table of `trainmark frameworks`: what stands, what does not, and why."""

import contextlib
import json
import shutil
import sys

import psutil
import pytest

from trainmark.machine.child_process import run
from trainmark.machine.frameworks.installed import State, find, python_of
from trainmark.machine.frameworks.interpreters import imported_version
from trainmark.machine.frameworks.locks import names
from trainmark.runner.inventory import framework_status

SEVEN = {"jax", "mindspore", "mxnet", "oneflow", "paddle", "pytorch", "tensorflow"}
KEYS = {
    "framework", "version", "installed", "conformant", "python", "interpreter", "device", "precisions",
    "state", "reason", "fix",
}  # fmt: skip


def package(toy):
    (path,) = toy.environment.glob("lib/python3*/site-packages/toy/__init__.py")
    return path


def test_every_framework_is_listed_whether_installed_or_not(toy):
    rows = json.loads(toy.call("--json").output)
    assert {row["framework"] for row in rows} >= {*SEVEN, "toy"}
    assert all(set(row) == KEYS for row in rows)


def test_the_table_has_a_line_for_each_and_says_how_to_install_what_is_absent(toy):
    lines = toy.call().output.splitlines()
    assert lines[0].split()[:3] == ["framework", "state", "version"]
    assert any(line.split()[:2] == ["toy", "absent"] for line in lines)
    assert lines[-1].startswith("to install: trainmark frameworks install ") and "toy" in lines[-1]


def test_a_whole_environment_is_installed_with_its_version_and_python(installed):
    row = framework_status("toy")
    assert (row.state, row.installed, row.version) == ("installed", True, "1.0")
    assert row.python == ".".join(map(str, sys.version_info[:3]))
    assert (row.interpreter, row.fix) == (str(installed.python), None)


def test_a_framework_that_is_not_there_is_absent_with_the_command_that_installs_it(toy):
    row = framework_status("toy")
    assert (row.state, row.installed) == ("absent", False)
    assert row.fix == "trainmark frameworks install toy"


def test_a_changed_lock_makes_the_environment_outdated(installed):
    installed.lock(pins="other==3.0\n")
    assert (find("toy").state, find("toy").reason) == (
        State.OUTDATED, "its lock has changed since it was installed"
    )  # fmt: skip
    assert framework_status("toy").fix == "trainmark frameworks install toy"


def test_a_comment_in_the_lock_changes_nothing(installed):
    installed.lock(header="# a remark\n# import: toy\n")
    assert find("toy").state is State.INSTALLED


def test_another_version_put_into_the_environment_makes_it_outdated(installed):
    info = package(installed).parents[1] / "toy-1.0.dist-info"
    info.rename(info.with_name("toy-1.5.dist-info"))
    assert find("toy").state is State.OUTDATED
    assert find("toy").reason == "it holds toy 1.5, and the lock says 1.0"


def test_a_package_that_is_gone_breaks_the_environment(installed):
    shutil.rmtree(package(installed).parents[1] / "toy-1.0.dist-info")
    row = framework_status("toy")
    assert (row.state, row.installed) == ("broken", False)
    assert row.fix == "trainmark frameworks install toy --force"


def test_a_file_that_is_gone_shows_when_the_framework_is_asked(installed):
    package(installed).write_text("from toy import lost")
    row = framework_status("toy")
    assert row.state == "broken" and "lost" in row.reason


def test_an_interpreter_that_is_gone_breaks_the_environment_and_is_not_replaced_by_another(installed):
    installed.python.unlink()
    assert find("toy").state is State.BROKEN
    assert python_of("toy") == str(installed.python)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"framework": "toy"}'])
def test_a_marker_that_says_nothing_is_none(installed, damage):
    installed.marker.write_text(damage)
    assert find("toy") is None and framework_status("toy").state == "interrupted"


def test_a_framework_without_a_wheel_here_says_so(toy):
    (toy.locks / "toy.txt").write_text("# unavailable: Toy runs on wood only; buy some\n")
    row = framework_status("toy")
    assert (row.state, row.fix) == ("unavailable", "Toy runs on wood only; buy some")


def test_a_framework_without_a_wheel_here_is_not_offered_to_an_interpreter_of_ones_own(toy):
    (toy.locks / "toy.txt").write_text("# unavailable: Toy runs on wood only; buy some\n")
    row = framework_status("toy", sys.executable)
    assert (row.state, row.fix) == ("absent", "Toy runs on wood only; buy some")


def test_an_interpreter_of_ones_own_is_asked_for_all_frameworks(installed):
    rows = json.loads(installed.call("--python", str(installed.python), "--json").output)
    states = {row["framework"]: row["state"] for row in rows}
    assert states["toy"] == "own"
    assert {states[name] for name in SEVEN} == {"absent"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no such device')", "RuntimeError: no such device"),
        ("import os; os.abort()", "import toy: it was ended by SIGABRT"),
        ("raise SystemExit(7)", "it left with exit code 7"),
        ("import time; time.sleep(600)", "import toy did not come to an end within 3 s"),
        ("import sys; sys.exit('\\x1b]0;evil\\x07bad luck')", "]0;evilbad luck"),
    ],
)
def test_what_goes_wrong_at_import_is_told_in_one_line(installed, source, reason):
    package(installed).write_text(source)
    assert imported_version(str(installed.python), "toy", limit=3) == (None, reason)


def test_a_flood_at_import_does_no_harm(installed):
    flood = "import sys\nfor _ in range(300): sys.stdout.write('x' * 100_000); sys.stderr.write('y' * 1000)"
    package(installed).write_text(f"__version__ = '1.0'\n{flood}")
    assert imported_version(str(installed.python), "toy") == ("1.0", None)


def test_of_a_flood_only_the_end_is_kept():
    program = "import sys; sys.stderr.write('x' * 5_000_000 + '\\nthe end'); sys.exit(1)"
    ended = run([sys.executable, "-c", program], lambda line: None)
    assert ended.last_line == "the end" and len(ended.errors) < 100_000


def test_a_child_that_hangs_is_ended_with_its_own_children(tmp_path):
    program = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    assert run([sys.executable, "-c", program], lambda line: None, limit=3).code is None
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int((tmp_path / "pid").read_text())).wait(timeout=60)


def test_a_child_that_leaves_a_grandchild_with_its_pipes_is_not_waited_for():
    program = "import subprocess, sys; subprocess.Popen(['sleep', '600']); print('done')"
    lines = []
    assert run([sys.executable, "-c", program], lines.append, limit=60).code == 0
    assert lines == ["done"]


def test_the_names_are_those_of_the_locks(shipped):
    assert set(names()) == SEVEN
