"""What must not happen on several hosts: obeyed names, shown secrets, unknown hosts, open ports."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil
import pytest
from cluster_run import ClusterRun
from light_trials import carriers, carry_out, job
from one_host import wait_until

from trainmark.launch.carriers.ssh import Ssh
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import Node, NodeError
from trainmark.launch.outcome import Outcome

SECRET = "hunter2-Zürich-$(touch injected)"
NASTY = {
    "QUOTES": 'it\'s "here"',
    "SHELL_WORDS": "$(touch injected) `touch injected` ; touch injected & $HOME",
    "LINES": "one\ntwo\r\n\ttouch injected\n",
    "BACKSLASH": "a\\nb\\",
    "UNICODE": "Zürich 数据",
    "EMPTY": "",
}
SHOW = """
import json, os, sys
from trainmark import probe
run = probe.start()
run.step(samples=1)
run.end()
names, *words = sys.argv[1:]
print(json.dumps([{name: os.environ.get(name) for name in names.split(",")}, words]))
"""
QUIET = """
import os, time
from trainmark import probe
run = probe.start()
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.02)
    run.step(samples=1)
run.end()
"""
# A program that tells its secret in pieces, on both streams, and in the error that it ends with.
TELLTALE = """
import os, sys, time
from pathlib import Path
from trainmark import probe
secret = os.environ["SITE_API_KEY"]
run = probe.start()
print("the key is", secret, flush=True)
for letter in secret:
    print(letter, end="", flush=True)
print(secret, file=sys.stderr, flush=True)
(Path(os.environ["OUTSIDE"]) / "told").touch()
while not (Path(os.environ["OUTSIDE"]) / "enough").exists():
    time.sleep(0.02)
    run.step(samples=1)
sys.exit(f"cannot log in with {secret}")
"""


@pytest.fixture
def ssh(hosts):
    def launcher(*names, config=None, options=()):
        return ClusterLauncher(Ssh([Node(name) for name in names], config or hosts.ssh_config, options))

    return launcher


def command_lines(hosts):
    """Of every process here and on the hosts."""
    here = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return here + [process.command for name in hosts.names for process in hosts.processes(name)]


def found_in(folder, text):
    """The files that hold it, also as JSON or a shell would write it."""
    forms = {text, json.dumps(text)[1:-1], text.replace("$", "\\$")}
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(form.encode() in path.read_bytes() for form in forms)
    ]


def test_variables_and_words_arrive_as_they_are_and_nothing_in_them_is_run(hosts, ssh, tmp_path):
    words = [",".join(NASTY), *NASTY.values()]
    given = job(tmp_path / "trial", SHOW, nodes=2, words=words, **NASTY)
    assert carry_out(hosts, ssh("node1", "node2"), given).judgement.outcome is Outcome.OK
    assert [json.loads(given.log(rank).read_text()) for rank in range(2)] == [[NASTY, words[1:]]] * 2
    assert not list(tmp_path.rglob("injected"))


@pytest.mark.parametrize(
    "words",
    [
        ("--hosts", "-oProxyCommand=touch injected"),
        ("--hosts=-oProxyCommand=touch injected",),
        ("--hosts", "node1;touch injected"),
        ("--hosts", "$(touch injected)"),
        ("--hosts", "node1\ntouch injected"),
        ("--hosts", "node1", "--interface", "eth0;touch injected"),
        ("--hosts", "node1", "--pass-env", "A;touch injected"),
        ("--hosts", "node1", "--pass-env", "A=1"),
        ("--hosts", "node1", "--launcher", "ssh;touch injected"),
        ("--hosts", "node1", "--name", "../injected"),
    ],
)
def test_what_could_be_obeyed_is_refused_with_a_sentence(hosts, tmp_path, words):
    argv = [sys.executable, "-m", "trainmark", "run", "quick", "--ssh-config", str(hosts.ssh_config), *words]
    environment = {**os.environ, "TRAINMARK_RUNS": str(tmp_path / "runs")}
    done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    assert not list(tmp_path.rglob("*injected*"))


@pytest.fixture
def telltale(hosts, tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_API_KEY", SECRET)

    def run_program(*where):
        run = ClusterRun(tmp_path, hosts, *where)
        (run.folder / "telltale.py").write_text(TELLTALE)
        environment = {"OUTSIDE": str(run.outside)}
        workload = {"name": "telltale", "command": "{python} -u telltale.py"}
        nodes = 2 if where else 1
        run.suite(workload=workload, environment=environment, retries=0, topology=[f"{nodes}n1g"])
        process = run.begin()
        run.wait_for((run.outside / "told").exists, "the program")
        shown = [line for line in command_lines(hosts) if SECRET in line]
        (run.outside / "enough").touch()
        done = run.finish(process)
        assert done.code == 1 and "cannot log in with *****" in done.errors, done.errors
        return run, done, shown

    return run_program


@pytest.mark.parametrize("where", ["here", "on hosts"])
def test_a_secret_that_a_program_prints_is_nowhere_in_what_is_kept_or_said(hosts, telltale, where):
    nodes = ("--hosts", "node1,node2", "--ssh-config", str(hosts.ssh_config), "--pass-env", "SITE_API_KEY")
    run, done, shown = telltale(*(nodes if where == "on hosts" else ()))
    assert shown == []
    assert SECRET not in done.output + done.errors
    assert found_in(run.folder, SECRET) == []
    assert "the key is *****" in next(run.runs.glob("*/trials/*/01/logs/rank0.log")).read_text()


def test_a_variable_that_was_not_passed_does_not_reach_the_hosts(hosts, ssh, tmp_path, monkeypatch):
    monkeypatch.setenv("SITE_API_KEY", SECRET)
    given = job(tmp_path / "trial", SHOW, nodes=1, words=["SITE_API_KEY"])
    carry_out(hosts, ssh("node1"), given)
    assert json.loads(given.log(0).read_text()) == [{"SITE_API_KEY": None}, []]


@pytest.fixture
def known(hosts, tmp_path):
    """A user's configuration that minds no host key, and the hosts that it knows by what key."""

    def config(lines):
        place = tmp_path / "known_hosts"
        place.write_text(lines)
        lax = hosts.ssh_config.read_text().replace("StrictHostKeyChecking yes", "StrictHostKeyChecking no")
        path = tmp_path / "ssh_config"
        path.write_text(lax.replace(str(hosts.known_hosts), str(place)))
        return path

    return config


def reached(launcher, hosts, tmp_path):
    given = job(tmp_path / "trial", SHOW, nodes=1, words=["RANK"])
    return carry_out(hosts, launcher, given).judgement.outcome


def swapped(hosts):
    """Each host under the key of the next."""
    lines = [line.split(" ", 1) for line in hosts.known_hosts.read_text().splitlines()]
    keys = [key for _, key in lines]
    return "".join(f"{name} {key}\n" for (name, _), key in zip(lines, [*keys[1:], keys[0]], strict=True))


@pytest.mark.parametrize("kind", ["unknown", "changed"])
def test_a_host_with_another_key_is_refused_whatever_the_user_s_configuration_says(
    hosts, ssh, known, tmp_path, kind
):
    config = known("" if kind == "unknown" else swapped(hosts))
    with pytest.raises(NodeError, match=r"node3.*(Host key|host key|HOST IDENTIFICATION)"):
        reached(ssh("node3", config=config), hosts, tmp_path)
    assert not any(map(hosts.processes, hosts.names))


def test_an_unknown_host_is_accepted_where_the_user_says_so_here(hosts, ssh, known, tmp_path):
    launcher = ssh("node3", config=known(""), options=("StrictHostKeyChecking=accept-new",))
    assert reached(launcher, hosts, tmp_path) is Outcome.OK


def test_a_changed_key_is_refused_also_then(hosts, ssh, known, tmp_path):
    launcher = ssh("node3", config=known(swapped(hosts)), options=("StrictHostKeyChecking=accept-new",))
    with pytest.raises(NodeError, match="node3"):
        reached(launcher, hosts, tmp_path)


def test_nothing_of_ours_listens_here_or_on_the_hosts(hosts, ssh, tmp_path):
    names = ("node1", "node2")

    def listening():
        return {name: hosts.run(name, ["ss", "-Hltun"]).stdout.split() for name in names}

    enough = tmp_path / "enough"
    given = job(tmp_path / "trial", QUIET, nodes=2, ENOUGH=str(enough))

    def listening_here():
        return {
            connection.laddr
            for pid in carriers()
            for connection in psutil.Process(pid).net_connections()
            if connection.status == psutil.CONN_LISTEN
        }

    # The bed itself may have a Slurm or a Ray that listens.
    before, seen = (listening(), listening_here()), []

    def look():
        seen.append((listening(), listening_here()))
        enough.touch()

    assert carry_out(hosts, ssh(*names), given, look).judgement.outcome is Outcome.OK
    assert seen == [before]
    assert wait_until(lambda: not any(map(hosts.processes, names)), 10)
