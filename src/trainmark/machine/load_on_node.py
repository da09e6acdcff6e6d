"""Who else is at work on a machine: one file, standard library, also sent to nodes as it stands."""

from __future__ import annotations

import json
import os
import sys
import time

SHOWN = 3
LEAST_SHARE = 0.03  # of the machine: what takes less is not named
IDLE, IOWAIT, GUEST = 3, 4, 8  # places in /proc/stat; the guests' time is counted in others


def busy_with(seconds: float, proc: str = "/proc") -> dict[str, object]:
    """Return which share of the processors is busy without this process, and what takes most of it.

    `busiest` lists a program's name, how many processes bear it, and their share of the machine.
    """
    clock, processes = _clock(proc), _ticks(proc)
    time.sleep(seconds)
    later, after = _clock(proc), _ticks(proc)
    whole = max(1, sum(later) - sum(clock))
    idle = later[IDLE] + later[IOWAIT] - clock[IDLE] - clock[IOWAIT]
    taken: dict[str, list[int]] = {}
    own = 0
    for pid, (name, ticks) in after.items():
        # What has begun since has no time before it.
        used = ticks - processes.get(pid, (name, 0))[1]
        if pid == os.getpid():
            own = used
        elif used > 0:
            taken.setdefault(name, []).append(used)
    most = sorted(taken.items(), key=lambda item: -sum(item[1]))[:SHOWN]
    shares = [[name, len(used), sum(used) / whole] for name, used in most]
    busy = (whole - idle - own) / whole
    return {
        "share": min(1.0, max(0.0, busy)),
        "busiest": [row for row in shares if float(row[2]) >= LEAST_SHARE],  # type: ignore[arg-type]
    }


def _clock(proc: str) -> list[int]:
    with open(f"{proc}/stat", encoding="ascii") as file:  # noqa: PTH123
        return [int(word) for word in file.readline().split()[1 : 1 + GUEST]]


def _ticks(proc: str) -> dict[int, tuple[str, int]]:
    """Return the name of each process and the processor time that it has taken."""
    processes = {}
    for entry in os.listdir(proc):  # noqa: PTH208
        try:
            with open(f"{proc}/{entry}/stat", errors="replace") as file:  # noqa: PTH123
                text = file.read()
            name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
            processes[int(entry)] = name, int(fields[11]) + int(fields[12])
        except (OSError, ValueError, IndexError):
            continue  # no process, or gone
    return processes


if __name__ == "__main__":
    print(json.dumps(busy_with(float(json.load(sys.stdin)["seconds"]))))
