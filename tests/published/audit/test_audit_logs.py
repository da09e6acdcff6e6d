"""A folder of logs: copies, edited copies, and paths that say something else."""

import pytest

from trainmark.audit.audit import AuditedLog, audit_logs, stamps_digest

STAMPED = [f"DLL 2021-01-01 10:00:0{second}.000000 - Iteration: {second}" for second in range(5)]


def log(path, digest, **facts):
    return AuditedLog(path=path, digest=digest, **facts)


def codes(*logs, **options):
    return [finding.code for finding in audit_logs(logs, **options)]


def test_logs_that_are_what_their_paths_say_are_silent():
    sound = {"world_size": 8, "batch_per_device": 128, "precision": "fp32", "steps": 150}
    one, two = (
        log(f"logs/1n8g/rn50_b128_fp32_{run}.log", str(run), stamps=str(run), **sound) for run in (1, 2)
    )
    assert codes(one, two, iterations_needed=120) == []


@pytest.mark.parametrize("ranks", [4, 16])
def test_a_log_of_more_or_fewer_devices_than_its_folder_says_is_told(ranks):
    assert codes(log("1n8g/a_1.log", "x", world_size=ranks)) == ["world-size-mismatch"]


def test_a_log_of_just_as_many_iterations_as_the_rule_needs_is_long_enough():
    assert codes(log("1n8g/a_1.log", "x", steps=120), iterations_needed=120) == []


def test_two_logs_of_one_content_are_a_copy():
    assert codes(log("1n8g/a_1.log", "x"), log("2n8g/a_1.log", "x")) == ["copied-log"]


def test_a_copy_with_another_world_size_keeps_its_time_stamps():
    first = stamps_digest([*STAMPED, "world_size : 16"])
    second = stamps_digest([*STAMPED, "world_size : 32"])
    assert codes(log("2n8g/a.log", "x", stamps=first), log("4n8g/a.log", "y", stamps=second)) == [
        "edited-copy"
    ]


def test_too_few_time_stamps_prove_nothing():
    assert stamps_digest(STAMPED[:2]) is None


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"world_size": 16}, "world-size-mismatch"),
        ({"batch_per_device": 256}, "batch-mismatch"),
        ({"precision": "amp"}, "precision-mismatch"),
        ({"steps": 99}, "too-few-iterations"),
    ],
)
def test_a_log_that_contradicts_its_path_or_rule_is_named(facts, code):
    assert codes(log("logs/1n8g/rn50_b128_fp32_1.log", "x", **facts), iterations_needed=120) == [code]


def test_fp16_and_amp_are_two_names_of_mixed_precision():
    assert codes(log("1n1g/r50_b256_fp16_1.log", "x", precision="amp")) == []


def test_a_handful_of_steps_is_a_short_window():
    assert codes(log("a.log", "x", steps=12)) == ["window-too-short"]
