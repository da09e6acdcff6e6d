"""Run one generated input after another, each in a process of its own with a limit of time and memory.

An input is made from its seed and number alone, so that a find can be made again: `--seed S --only N`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

CPU_SECONDS = 10
WALL_SECONDS = 60  # other work on the machine may slow an input down
MEGABYTES = 500
ADDRESS_SPACE = 3 << 30  # far more than is resident: libraries map much that they never touch
SHOWN_BYTES = 4000


@dataclass(frozen=True)
class Case:
    """One input: what it is, and its check, which returns what is wrong or None."""

    label: str
    check: Callable[[], str | None]


def fuzz(program: str, count: int, make: Callable[[random.Random, int], Case]) -> None:
    """Take the options, run the inputs, print the finds and the summary; leave with 1 where there are any."""
    options = _options(program, count)
    begun = time.monotonic()
    finds = inputs = 0
    numbers = range(options.count) if options.only is None else [options.only]
    for number in numbers:
        if options.seconds and time.monotonic() - begun > options.seconds:
            break
        inputs += 1
        case = make(random.Random(f"{options.seed}/{number}"), number)
        if problem := attempt(case.check):
            finds += 1
            print(f"--- {case.label}\n{problem.strip()[-SHOWN_BYTES:]}")
            print(f"again: python fuzz/{program}.py --seed {options.seed} --only {number}", flush=True)
    print(f"{inputs} inputs, {finds} finds")
    sys.exit(1 if finds else 0)


def attempt(check: Callable[[], str | None]) -> str | None:
    """What is wrong with an input: what its check returns or raises, its time, its memory, its death."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _checked_here(check, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        problem = pipe.read().decode("utf-8", "replace")
    _, status, usage = os.wait4(child, 0)
    with contextlib.suppress(ProcessLookupError):  # what the input started, where it is still there
        os.killpg(child, signal.SIGKILL)
    if problem:
        return problem
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        limits = {"SIGXCPU": f"more than {CPU_SECONDS} s of CPU", "SIGALRM": f"more than {WALL_SECONDS} s"}
        return limits.get(name, f"died of {name}")
    if usage.ru_maxrss > MEGABYTES << 10:
        return f"{usage.ru_maxrss >> 10} MB resident, more than {MEGABYTES}"
    return f"exit code {status >> 8}" if status else None


def _checked_here(check: Callable[[], str | None], write_end: int) -> None:
    """In the child: never returns."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    used = int(time.process_time()) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (used + CPU_SECONDS, used + CPU_SECONDS + 5))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WALL_SECONDS)
    try:
        problem = check() or ""
    except BaseException:  # noqa: BLE001 - every exception is a find
        problem = traceback.format_exc()
    os.write(write_end, problem.encode("utf-8", "backslashreplace")[-SHOWN_BYTES:])
    os._exit(0)


def _options(program: str, count: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"fuzz/{program}.py")
    parser.add_argument("--count", type=int, default=count, help=f"How many inputs.  [default: {count}]")
    parser.add_argument("--seed", type=int, default=0, help="Inputs of another seed are others.")
    parser.add_argument("--seconds", type=float, help="Stop after so long.")
    parser.add_argument("--only", type=int, metavar="N", help="Only input N, to see a find again.")
    return parser.parse_args()
