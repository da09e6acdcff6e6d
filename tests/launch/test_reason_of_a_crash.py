"""The line of a log that is shown for a crash: the program's own exception, in the shapes that logs have."""

from __future__ import annotations

import signal

import pytest

from trainmark.launch.outcome import EndCause, JobEnd, outcome_of

FRAME = '  File "train.py", line 3, in <module>\n    main()\n    ~~~~^^\n'
TRACEBACK = f"Traceback (most recent call last):\n{FRAME}"
ACCELERATE = (
    f"{TRACEBACK}AttributeError: TPU. Did you mean: 'CPU'?\n{TRACEBACK}"
    "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.\n"
)
TORCHRUN = f"""step 3
[rank1]: {TRACEBACK.replace(chr(10), chr(10) + "[rank1]: ")}ValueError: rank 1 has no data
E1119 08:00:00.000000 4242 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1)
{TRACEBACK}torch.distributed.elastic.multiprocessing.errors.ChildFailedError:{" "}
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-19_08:00:00
  exitcode  : 1 (pid: 4243)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
HYDRA = f"""Error executing job with overrides: []
{TRACEBACK}hydra.errors.InstantiationException: Error in call to target 'torch.optim.Adam':
TypeError("unexpected keyword argument 'lrr'")
full_key: optimizer

Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.
"""
JAX = f"""{TRACEBACK}TypeError: dot_general requires contracting dimensions to have the same shape.
--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception. \
Set JAX_TRACEBACK_FILTERING=off to include these.
"""
LOAD = f"""{TRACEBACK}_pickle.UnpicklingError: Weights only load failed. This file can still be loaded.
\t(1) In PyTorch 2.6, we changed the default value of the `weights_only` argument.

Check the documentation of torch.load to learn more about types accepted by default with weights_only.
"""
CHAINED = f"""{TRACEBACK}KeyError: 'lr'

During handling of the above exception, another exception occurred:

{TRACEBACK}queue.Empty
"""
ABORT = """terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: an illegal memory access was encountered
Fatal Python error: Aborted

Extension modules: numpy.core._multiarray_umath, torch._C (total: 2)
"""


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (f"{TRACEBACK}ValueError: bad\n", "ValueError: bad"),
        (f"{TRACEBACK}ValueError: one\nand two\n\nleft in order\n", "ValueError: one"),
        (f"{TRACEBACK}AssertionError\n", "AssertionError"),
        (f"{TRACEBACK}mylib.OutOfLuck: again\ncleaning up\n", "mylib.OutOfLuck: again"),
        (ACCELERATE, "AttributeError: TPU. Did you mean: 'CPU'?"),
        (TORCHRUN, "ValueError: rank 1 has no data"),
        (
            HYDRA,
            "hydra.errors.InstantiationException: Error in call to target 'torch.optim.Adam': TypeError(",
        ),
        (
            JAX,
            "TypeError: dot_general requires contracting dimensions to have the same shape.",
        ),
        (LOAD, "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded."),
        (CHAINED, "queue.Empty"),
        ("Usage: train.py [OPTIONS]\n\nError: No such option: --lrr\n", "Error: No such option: --lrr"),
        (
            "RuntimeError: tried once\n" + "step\n" * 100 + "config.yaml is missing\n",
            "config.yaml is missing",
        ),
        (
            "python: can't open file 'nothere.py': [Errno 2] No such file or directory\n",
            "python: can't open file",
        ),
        (
            f"{TRACEBACK}subprocess.CalledProcessError: it failed\n",
            "subprocess.CalledProcessError: it failed",
        ),
    ],
)
def test_a_crash_is_told_by_the_exception_that_the_program_left_with(log, reason):
    detail = outcome_of(JobEnd(EndCause.RANK_FAILED, {0: 1}, 0, 3.0), {0: log}).detail
    assert detail.removeprefix("rank 0 left with exit code 1: ").startswith(reason)


def test_an_abort_is_told_by_what_was_thrown_and_a_kill_by_the_last_line():
    ended = {
        number: JobEnd(EndCause.RANK_FAILED, {0: -number}, 0, 3.0)
        for number in (signal.SIGABRT, signal.SIGTERM)
    }
    assert "illegal memory access" in outcome_of(ended[signal.SIGABRT], {0: ABORT}).detail
    assert outcome_of(ended[signal.SIGTERM], {0: "ValueError: handled\nstep 9\n"}).detail.endswith(": step 9")
