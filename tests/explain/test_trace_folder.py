"""The folder that a profiled program leaves: manifests checked, passes that are missing noted."""

from __future__ import annotations

import json

import pytest
from builders_trace import annotation, kernel, operator, write_trace

from trainmark.base.errors import UserError
from trainmark.explain import profile_folder


def manifest(rank=0, **changes):
    names = (profile_folder.TIMING, profile_folder.DETAIL)
    return {
        "version": 1,
        "rank": rank,
        "world_size": 2,
        "framework": "pytorch",
        "framework_version": "2.11",
        "device": "cuda",
        "device_name": "NVIDIA H200",
        "passes": [
            {"name": name, "trace": f"rank{rank}-{name}.json", "steps": 1, "step_seconds": [0.1 + number]}
            for number, name in enumerate(names)
        ],
        "unprofiled_step_seconds": [[0.5, 0.25], [0.75], []],
        "samples_per_step": 256,
        "memory": {"peak": 5},
        "stream_clock": "cuda",
        "facts": {"anything": [1]},
        **changes,
    }


def leave(path, *manifests):
    for content in manifests:
        rank = content["rank"]
        (path / f"rank{rank}.json").write_text(json.dumps(content))
        for name in (profile_folder.TIMING, profile_folder.DETAIL):
            events = [annotation("trainmark_step#0", 0, 9), operator(name, 1, 2), kernel("k", 3, 2)]
            write_trace(path / f"rank{rank}-{name}.json", events)
    return path


def refusal(path):
    with pytest.raises(UserError) as error:
        profile_folder.read(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_all_ranks_are_read_with_their_passes_and_step_times(tmp_path):
    (tmp_path / "rank7.json.part").write_text("half")
    captured = profile_folder.read(leave(tmp_path, manifest(1), manifest(0)))
    assert [rank.rank for rank in captured.ranks] == [0, 1]
    assert captured.notes == ()
    rank = captured.ranks[0]
    assert (rank.device, rank.device_name, rank.framework, rank.world_size) == (
        "cuda",
        "NVIDIA H200",
        "pytorch",
        2,
    )
    assert rank.timing.host.names != rank.detail.host.names
    assert (rank.unprofiled, rank.profiled, rank.notes) == ((0.5, 0.25, 0.75), (0.1,), ())
    assert rank.manifest["memory"] == {"peak": 5}


def test_steps_are_held_against_those_right_beside_their_pass_where_these_are_known(tmp_path):
    series = [[0.5, 0.25], [0.75], [9.0]]
    for number, unprofiled in enumerate([series, series[:2]]):
        path = tmp_path / str(number)
        path.mkdir()
        captured = profile_folder.read(
            leave(path, manifest(0, unprofiled_step_seconds=unprofiled), manifest(1))
        )
        assert captured.ranks[0].unprofiled == (0.5, 0.25, 0.75)
    first, second = manifest(0)["passes"]
    detail_alone = manifest(0, unprofiled_step_seconds=series, passes=[dict(first, error="full"), second])
    (tmp_path / "detail").mkdir()
    captured = profile_folder.read(leave(tmp_path / "detail", detail_alone, manifest(1)))
    assert captured.ranks[0].unprofiled == (0.75, 9.0)


def test_a_rank_that_left_nothing_is_noted(tmp_path):
    assert profile_folder.read(leave(tmp_path, manifest(1))).notes == (
        "1 of 2 ranks left a profile; rank 0 is missing.",
    )


def test_a_pass_that_failed_is_noted_and_shares_come_from_the_other(tmp_path):
    content = manifest()
    content["passes"][0] = {"name": "timing", "error": "CUPTI is in use."}
    (rank,) = profile_folder.read(leave(tmp_path, content)).ranks
    assert (rank.timing, rank.profiled) == (None, (1.1,))
    assert rank.notes == ("Rank 0: the timing pass failed: CUPTI is in use.",)


def test_a_trace_that_is_missing_is_noted(tmp_path):
    (leave(tmp_path, manifest()) / "rank0-detail.json").unlink()
    (rank,) = profile_folder.read(tmp_path).ranks
    assert (rank.detail, rank.notes) == (None, ("Rank 0: the trace of the detail pass is missing.",))


def test_a_cpu_needs_no_timing_pass(tmp_path):
    content = manifest(device="cpu", world_size=1)
    del content["passes"][0]
    write_trace(leave(tmp_path, content) / "rank0-detail.json", [operator("aten::mm", 0, 1)])
    (rank,) = profile_folder.read(tmp_path).ranks
    assert (rank.timing, rank.notes, rank.detail.device) == (None, (), "cpu")


def test_a_pass_without_kernels_is_not_taken_for_a_profile_of_the_gpu(tmp_path):
    write_trace(leave(tmp_path, manifest()) / "rank0-detail.json", [operator("aten::mm", 0, 1)])
    (rank,) = profile_folder.read(tmp_path).ranks
    assert rank.detail is None
    assert "the detail pass recorded no kernels" in rank.notes[0]


@pytest.mark.parametrize(
    "passes", [[], [{"name": "timing", "error": "no"}, {"name": "detail", "trace": "none"}]]
)
def test_a_rank_without_any_profile_is_refused(tmp_path, passes):
    assert "holds no usable profile of rank 0" in refusal(leave(tmp_path, manifest(passes=passes)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "written by a newer Trainmark (version 2)"),
        ({"version": 0}, "its version is 0"),
        ({"version": "1"}, "'version' must be a whole number"),
        ({"world_size": 0}, "there is no rank 0 of 0"),
        ({"framework": None}, "it names no framework"),
        ({"framework": 5}, "'framework' must be text"),
        ({"device": None}, "neither cuda nor cpu"),
        ({"device": "abacus"}, "neither cuda nor cpu"),
        ({"passes": {}}, "'passes' must be a list"),
        ({"passes": [{"name": "timing", "trace": "../../etc/passwd"}]}, "is no file name"),
        ({"passes": [{"name": "timing", "step_seconds": ["1"]}]}, "must be a finite number"),
        ({"unprofiled_step_seconds": [[float("nan")]]}, "must be a finite number"),
        ({"unprofiled_step_seconds": [[-1.0]]}, "a step took no time"),
        ({"memory": 5}, "'memory' must be an object"),
    ],
)
def test_a_manifest_with_a_wrong_value_is_refused(tmp_path, changes, reason):
    assert reason in refusal(leave(tmp_path, manifest(**changes)))


def test_a_rank_that_says_why_it_has_no_profile_is_quoted(tmp_path):
    content = manifest(framework=None, device=None, passes=[], error="MXNet has no profiler\nthat is known.")
    assert refusal(leave(tmp_path, content)).endswith("rank 0: MXNet has no profiler that is known.")


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\0"])
def test_a_manifest_that_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / "rank0.json").write_text(text)
    assert "rank0.json is damaged" in refusal(tmp_path)


def test_a_manifest_under_another_ranks_name_is_refused(tmp_path):
    (tmp_path / "rank1.json").write_text(json.dumps(manifest(0)))
    assert "it is of rank 0" in refusal(tmp_path)


def test_profiles_of_runs_of_two_sizes_are_refused(tmp_path):
    assert "mixes profiles of 2 and of 4 ranks" in refusal(
        leave(tmp_path, manifest(0), manifest(1, world_size=4))
    )


def test_a_trace_that_is_cut_short_is_named(tmp_path):
    (leave(tmp_path, manifest()) / "rank0-timing.json").write_text('{"traceEvents": [')
    assert "rank0-timing.json is cut short" in refusal(tmp_path)


def test_an_empty_folder_and_one_that_is_not_there_are_refused(tmp_path):
    assert "holds no profile" in refusal(tmp_path)
    assert "No such file or directory" in refusal(tmp_path / "none")
