"""Pages that a profiler's records have for themselves, in a process of its own."""

import ctypes
import json
import subprocess
import sys

import pytest

PROGRAM = """
import json
from trainmark.inside.profiler import heap

def status():
    now = heap.kibibytes("/proc/self/status")
    return now["VmRSS"], now["VmHWM"]

tensors = bytearray(256 << 20)
levels = [status()]
heap.reserve()
heap.reserve()
levels.append(status())
heap.give_back()
levels.append(status())
del tensors
heap.give_back()
print(json.dumps([*levels, status()]))
"""
MEBIBYTE = 1024  # kB


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library is not glibc")
def test_pages_are_reserved_once_given_back_and_no_longer_part_of_the_peak():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, reserved, given_back, without_tensors = json.loads(done.stdout)
    assert 50 * MEBIBYTE < reserved[0] - before[0] < 110 * MEBIBYTE
    assert given_back[0] < before[0] + 10 * MEBIBYTE
    assert without_tensors[0] <= without_tensors[1] < before[0] - 200 * MEBIBYTE


def test_elsewhere_nothing_happens(monkeypatch):
    from trainmark.inside.profiler import heap

    class Musl:
        def __init__(self, name):
            pass

    monkeypatch.setattr(ctypes, "CDLL", Musl)
    heap.reserve()
    heap.give_back()
