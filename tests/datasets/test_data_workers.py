"""Processes that carry tasks out: answers, failures, and no hang."""

import os
import signal

import pytest

from trainmark.base.errors import UserError
from trainmark.data.workers import in_parallel


def double(number):
    return 2 * number


def fail_at_three(number):
    if number == 3:
        raise UserError("three is refused.")
    return number


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_comes_back_with_its_answer(workers):
    assert dict(in_parallel(double, range(20), workers)) == {n: 2 * n for n in range(20)}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_worker_raises_reaches_the_caller(workers):
    with pytest.raises(UserError, match="three"):
        list(in_parallel(fail_at_three, range(20), workers))


def test_a_killed_worker_is_a_sentence_and_no_hang():
    with pytest.raises(UserError, match="a worker was killed"):
        list(in_parallel(die, range(4), 2))
