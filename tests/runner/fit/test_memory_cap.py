"""A cap of the memory: a process on the CPU that outgrows it, and a card of which the rest is taken."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.launch.outcome import OUT_OF_MEMORY
from trainmark.workloads.common import memory_cap

MIB = 2**20
GROW = """
import sys, types
from trainmark.workloads.common import memory_cap
memory_cap.on_host(types.SimpleNamespace(memory_cap=int(sys.argv[1]), device="cpu"))
held = b"x" * int(sys.argv[2])
print("done")
"""
# The entry points of the driver that are used, on a card of 140 GB; what is taken is printed.
DRIVER = """
#include <stddef.h>
#include <stdio.h>
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *device, int ordinal) { *device = 40 + ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = (void *)(1L << 40); return device != 41; }
int cuCtxPushCurrent_v2(void *context) { return context != (void *)(1L << 40); }
int cuCtxPopCurrent_v2(void **context) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *total = 140000000000; *free = *total; return 0; }
int cuMemAlloc_v2(unsigned long long *block, size_t bytes) {
  if (bytes > 139000000000) return 2;
  printf("%zu\\n", bytes); fflush(stdout); return 0; }
"""
CAP = """
import os, sys, types
from trainmark.workloads.common import memory_cap
memory_cap.DRIVER = sys.argv[1]
memory_cap.on_card(types.SimpleNamespace(memory_cap=int(sys.argv[2]), device="cuda", local_rank=1))
print(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION"), os.environ.get("XLA_CLIENT_MEM_FRACTION"))
"""


def python(program, *words, **variables):
    command = [sys.executable, "-c", program, *map(str, words)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)


def test_a_process_that_outgrows_its_cap_ends_with_a_word_that_tells_why():
    ended = python(GROW, 200 * MIB, 400 * MIB)
    assert ended.returncode == 1
    assert OUT_OF_MEMORY.search(ended.stderr)
    assert f"the memory cap of {200 * MIB}" in ended.stderr


def test_a_process_below_its_cap_is_left_alone():
    ended = python(GROW, 400 * MIB, 100 * MIB)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A driver with a card, which this machine need not have."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler; install gcc")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "cuda.c").write_text(DRIVER)
    command = ["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "cuda.c"]
    subprocess.run(command, check=True, timeout=60)
    return folder / "libcuda.so.1"


def test_on_a_card_all_is_taken_that_a_smaller_one_does_not_have(driver):
    ended = python(CAP, driver, 16 << 30)
    taken, share = ended.stdout.split("\n")[:2]
    assert int(taken) == 140_000_000_000 - (16 << 30) + memory_cap.DRIVER_KEEPS
    assert float(share.split()[0]) == pytest.approx(0.75 * ((16 << 30) - memory_cap.DRIVER_KEEPS) / 140e9)


def test_a_share_that_the_user_gave_jax_is_taken_of_what_is_left(driver):
    ended = python(CAP, driver, 16 << 30, XLA_CLIENT_MEM_FRACTION="0.9")
    old, new = ended.stdout.split("\n")[1].split()
    assert (old, float(new)) == ("None", pytest.approx(0.9 * memory_cap.usable(16 << 30) / 140e9))


def test_a_cap_that_leaves_no_room_for_the_context_is_said_in_words(driver):
    ended = python(CAP, driver, 1 << 29)
    assert ended.returncode != 0
    assert "the memory cannot be capped" in ended.stderr
    assert not OUT_OF_MEMORY.search(ended.stderr)


def test_without_a_cap_nothing_is_done():
    memory_cap.on_host(SimpleNamespace(memory_cap=None, device="cpu"))
    memory_cap.on_card(SimpleNamespace(memory_cap=None, device="cuda", local_rank=0))


@given(st.integers(1 << 30, 1 << 38), st.integers(1 << 30, 1 << 38))
def test_what_is_left_is_what_the_smaller_card_has_and_no_more_than_there_is(cap, total):
    left = total - memory_cap.taken(cap, total)
    assert left == min(total, memory_cap.usable(cap))
