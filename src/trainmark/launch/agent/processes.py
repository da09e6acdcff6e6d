"""Processes of a node: what a rank begins with, who bears a mark, and their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 5.0
DAEMON_SECONDS = 1.0
# What MPI starts on a node to carry us.
MPI_DAEMONS = frozenset({"orted", "prted", "hydra_pmi_proxy"})


def adopt_orphans() -> None:
    """What a rank leaves behind becomes ours, so that it can be found."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def become_rank() -> None:
    """Before the program starts: it dies with the agent, and what we ignore is not ignored in it."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler for the signal: any other would die of it."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_marked(mark: str) -> bool:
    """Ends every process with `NAME=value` in its environment, also those forked meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        pids = marked(mark)
        if not pids:
            return True
        send(pids, signal.SIGKILL)
        time.sleep(0.02)
    return False


def marked(mark: str) -> list[int]:
    pids = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environment.read_bytes().split(b"\0"):
                pids.append(int(environment.parent.name))
    return [pid for pid in pids if pid != os.getpid()]


def end_mpi_daemon() -> None:
    """Cut off from home as we are, it would wait a quarter of an hour for TCP to give up."""
    parent = os.getppid()
    with contextlib.suppress(OSError):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if Path(f"/proc/{parent}/comm").read_text().strip() not in MPI_DAEMONS:
                return
            os.kill(parent, number)
            time.sleep(DAEMON_SECONDS)


def kernel_oom_kills() -> int:
    """How often the kernel has ended a process for want of memory since boot; 0 where it does not say."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def exit_code(status: int) -> int:
    """As `subprocess` says it: negative for a signal."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux has it; elsewhere closing input must do
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
