"""Processes that carry jobs out: answers, failures, progress, and no hang."""

import os
import signal

import pytest

from trainmark.base.errors import UserError
from trainmark.data.jobs import Job, count, results


def jobs_of(function, count):
    return [Job(function, (number,)) for number in range(count)]


def count_some(number):
    count(number)


def double(number):
    return 2 * number


def fail_at_three(number):
    if number == 3:
        raise UserError("three is refused.")
    return number


def die(number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_job_comes_back_with_its_answer(workers):
    answers = {job.arguments: answer for job, answer in results(jobs_of(double, 20), workers)}
    assert answers == {(n,): 2 * n for n in range(20)}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_worker_raises_reaches_the_caller(workers):
    with pytest.raises(UserError, match="three"):
        list(results(jobs_of(fail_at_three, 20), workers))


def test_a_killed_worker_is_a_sentence_and_no_hang():
    with pytest.raises(UserError, match="a worker was killed"):
        list(results(jobs_of(die, 4), 2))


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_job_counts_and_what_it_does_not_is_its_size_in_the_end(workers):
    seen = []
    jobs = [Job(count_some, (number,), 10) for number in range(3)]
    list(results(jobs, workers, lambda done, total: seen.append((done, total)), done_before=5))
    assert (seen[0], seen[-1]) == ((5, 35), (35, 35))
    assert seen == sorted(seen)
