import signal

import pytest

from trainmark.launch.job import NodeLoss
from trainmark.launch.outcome import EndCause, JobEnd, Outcome, outcome_of

TORCH_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."
LOST_PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4321"


def failed(culprit, oom_kills=0, **exits):
    codes = {int(rank.removeprefix("rank")): code for rank, code in exits.items()}
    return JobEnd(EndCause.RANK_FAILED, codes, culprit, 3.0, oom_kills)


def test_every_rank_leaving_with_zero_is_ok():
    judgement = outcome_of(JobEnd(EndCause.FINISHED, {0: 0, 1: 0}, None, 9.0), {0: "done", 1: "done"})
    assert (judgement.outcome, judgement.rank, judgement.transient) == (Outcome.OK, None, False)


def test_a_finished_trial_that_printed_the_words_out_of_memory_is_still_ok():
    ending = JobEnd(EndCause.FINISHED, {0: 0}, None, 9.0)
    assert outcome_of(ending, {0: "batch 512: out of memory, using 256\ndone"}).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [
        (EndCause.STOPPED, Outcome.INTERRUPTED),
        (EndCause.TIME_UP, Outcome.TIMEOUT),
        (EndCause.SILENT, Outcome.HUNG),
        (EndCause.AGENT_LOST, Outcome.CRASHED),
    ],
)
def test_a_trial_that_was_ended_has_the_outcome_of_its_cause_and_is_not_retried(cause, outcome):
    judgement = outcome_of(JobEnd(cause, {0: None, 1: None}, None, 60.0), {0: LOST_PEER, 1: TORCH_OOM})
    assert (judgement.outcome, judgement.transient) == (outcome, False)


def test_a_node_that_went_away_is_lost_and_named():
    ending = JobEnd(
        EndCause.NODE_LOST, {0: None}, None, 9.0, loss=NodeLoss("node2", "its connection was lost")
    )
    judgement = outcome_of(ending, {0: LOST_PEER})
    assert (judgement.outcome, judgement.node) == (Outcome.LOST, "node2")
    assert judgement.detail == "node2: its connection was lost"


def test_the_last_line_of_a_log_tells_why_a_rank_left():
    judgement = outcome_of(failed(0, rank0=1), {0: "Traceback\nValueError: first\nValueError: second\n\n"})
    assert judgement.detail.endswith(": ValueError: second")


def test_a_time_limit_names_the_setting_to_raise():
    assert "limits.trial" in outcome_of(JobEnd(EndCause.TIME_UP, {0: None}, None, 60.0), {}).detail


def test_a_hang_names_the_rank_that_fell_behind():
    judgement = outcome_of(JobEnd(EndCause.SILENT, {0: None, 3: None}, 3, 60.0), {})
    assert judgement.rank == 3 and "rank 3" in judgement.detail


def test_a_hang_without_a_culprit_blames_no_rank():
    judgement = outcome_of(JobEnd(EndCause.SILENT, {0: None, 1: None}, None, 60.0), {})
    assert judgement.rank is None and "the ranks" in judgement.detail


@pytest.mark.parametrize(
    "message",
    [
        TORCH_OOM,
        "RuntimeError: [enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory",
        "OSError: [Errno 12] Cannot allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "MemoryError",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123 bytes",
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 442299368 bytes.",
        "ResourceExhaustedError: Fail to alloc memory of 4194304 size, error code is 12.",
        "RuntimeError: std::bad_alloc",
        "oneflow._oneflow_internal.exception.RuntimeError: Error: allocate failed",
        "Operation received an exception:Status: 1, message: could not create a primitive, in file mkl.cc",
        "MemoryError: 840114176 bytes were in use, more than the memory cap of 838860800",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_each_framework_s_word_for_out_of_memory_is_known_and_not_retried(message):
    judgement = outcome_of(failed(0, rank0=1), {0: f"Traceback:\n{message}\n"})
    assert (judgement.outcome, judgement.rank, judgement.transient) == (Outcome.OOM, 0, False)
    assert message in judgement.detail


def test_out_of_memory_on_one_rank_outranks_the_lost_connections_it_causes():
    judgement = outcome_of(failed(0, rank0=1, rank1=1), {0: LOST_PEER, 1: TORCH_OOM})
    assert (judgement.outcome, judgement.rank) == (Outcome.OOM, 1)


def test_a_rank_that_still_ran_is_not_the_one_out_of_memory():
    judgement = outcome_of(failed(0, rank0=1, rank1=None), {0: "ValueError: no", 1: TORCH_OOM})
    assert (judgement.outcome, judgement.rank) == (Outcome.CRASHED, 0)


@pytest.mark.parametrize("code", [-signal.SIGKILL, 128 + signal.SIGKILL])
def test_a_kill_while_the_kernel_ended_processes_for_memory_is_out_of_memory(code):
    judgement = outcome_of(failed(1, oom_kills=1, rank0=None, rank1=code), {})
    assert (judgement.outcome, judgement.rank) == (Outcome.OOM, 1)


def test_a_kill_by_someone_else_is_a_crash_and_not_retried():
    judgement = outcome_of(failed(1, rank0=None, rank1=-signal.SIGKILL), {0: "", 1: "step 4\n"})
    assert (judgement.outcome, judgement.rank, judgement.transient) == (Outcome.CRASHED, 1, False)
    assert judgement.detail == "rank 1 was ended by SIGKILL: step 4"


def test_a_killed_rank_is_not_retried_because_its_peers_complain():
    judgement = outcome_of(failed(1, rank0=1, rank1=-signal.SIGKILL), {0: LOST_PEER, 1: "step 4"})
    assert (judgement.rank, judgement.transient) == (1, False)


def test_a_rank_that_only_lost_its_peer_is_not_blamed_though_it_was_seen_first():
    judgement = outcome_of(failed(0, rank0=1, rank1=-signal.SIGSEGV), {0: LOST_PEER, 1: "step 4"})
    assert judgement.rank == 1 and "SIGSEGV" in judgement.detail


def test_ranks_that_all_lost_each_other_are_worth_another_try():
    judgement = outcome_of(failed(1, rank0=1, rank1=1), {0: LOST_PEER, 1: LOST_PEER})
    assert (judgement.outcome, judgement.rank, judgement.transient) == (Outcome.CRASHED, 1, True)


def test_a_port_in_use_is_worth_another_try():
    tail = "DistNetworkError: EADDRINUSE, message: address already in use\nsome last line"
    judgement = outcome_of(failed(0, rank0=1, rank1=None), {0: tail, 1: ""})
    assert judgement.transient and "address already in use" in judgement.detail


def test_a_refusal_of_the_workload_is_a_skip_with_its_reason():
    judgement = outcome_of(
        failed(0, rank0=3), {0: "warming up\nrefused: tf32 needs a newer GPU; use fp32.\n"}
    )
    assert (judgement.outcome, judgement.detail) == (Outcome.SKIPPED, "tf32 needs a newer GPU; use fp32.")


@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        (1, "left with exit code 1"),
        (255, "left with exit code 255"),
        (-signal.SIGABRT, "was ended by SIGABRT"),
        (128 + signal.SIGTERM, "was ended by SIGTERM"),
        (-(signal.SIGRTMIN + 3), f"was ended by signal {signal.SIGRTMIN + 3}"),
    ],
)
def test_an_exit_is_told_in_words(code, phrase):
    assert outcome_of(failed(0, rank0=code), {0: ""}).detail == f"rank 0 {phrase}"


def test_a_crash_shows_the_last_line_that_says_something():
    assert outcome_of(failed(0, rank0=1), {0: "ValueError: bad\n\n  \n"}).detail.endswith(": ValueError: bad")


def test_an_endless_line_is_cut_short():
    assert len(outcome_of(failed(0, rank0=1), {0: "x" * 16384}).detail) < 400


@pytest.mark.parametrize(
    "tail",
    [
        "",
        "\n\n\n",
        "\ufffd" * 5000,
        "refused:",
        "refused: ",
        "\u2028\x85",
        "%s {0} \\",
        "<script>alert(1)</script>",
    ],
)
def test_no_text_of_a_log_upsets_the_judgement(tail):
    judgement = outcome_of(failed(0, rank0=1), {0: tail})
    assert judgement.outcome is Outcome.CRASHED and "\n" not in judgement.detail


def test_a_log_that_is_missing_altogether_is_no_obstacle():
    assert outcome_of(failed(1, rank0=None, rank1=9), {}).rank == 1
