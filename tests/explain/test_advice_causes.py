"""A planted cause is named first, with a number and a line to type."""

from dataclasses import replace

import pytest
from builders_what_if import MS, USUAL, gpu_step

from trainmark.explain.advice import AdviceEvidence, diagnose
from trainmark.explain.explanation import CollectiveBucket, IdleTime, Verified
from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.situation import StepPart, TrainingSettings

EAGER = TrainingSettings(framework="pytorch", precision="bf16", layout="NHWC", batch=256)


def advice_for(situation, **parts):
    return diagnose(AdviceEvidence(situation, predict(situation), **parts))


PLANTED = {
    "loader": gpu_step(idle={"loader": 30 * MS, "launch": 3 * MS}),
    "synchronisation": gpu_step(idle={"synchronisation": 4 * MS, "launch": 2 * MS}),
    "launch": gpu_step(
        idle={"launch": 40 * MS, "synchronisation": 1 * MS},
        gaps={"launch": 500},
        convolution=replace(USUAL["convolution"], alone=4 * MS, busy=4 * MS),
    ),
    "layout": gpu_step(
        convolution=replace(USUAL["convolution"], alone=55 * MS, busy=55 * MS, layout_copies=14 * MS),
        settings=replace(EAGER, layout="NCHW", precision="amp"),
    ),
    "precision": gpu_step(
        convolution=replace(USUAL["convolution"], alone=400 * MS, busy=400 * MS),
        settings=replace(EAGER, precision="fp32"),
    ),
    "optimiser": gpu_step(
        optimiser=StepPart("optimiser", 12 * MS, 12 * MS, 1800),
        idle={"launch": 11 * MS},
        gaps={"launch": 1500},
    ),
    "link": gpu_step(communication=StepPart("communication", 60 * MS, 70 * MS, 12)),
    "clocks": gpu_step(clock=0.6),
}


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first(cause):
    first, *_ = advice_for(PLANTED[cause])
    assert first.cause == cause
    assert first.low <= first.gain <= first.high
    assert first.gain > 1
    assert first.how


def test_a_sound_step_has_no_cause_to_name():
    improvements = {"compile", "batch ×2"}
    assert {advice.cause for advice in advice_for(gpu_step())} <= improvements


def test_nothing_is_advised_for_less_than_a_percent():
    assert all(advice.gain >= 1 for situation in PLANTED.values() for advice in advice_for(situation))


def test_a_synchronisation_is_advised_by_its_call_and_line():
    idle = (IdleTime("synchronisation", 20_000_000, 5, ("aten::item at train.py(31), 5 times",)),)
    first, *_ = advice_for(PLANTED["synchronisation"], idle=idle)
    assert first.how.startswith("take aten::item at train.py(31), 5 times out of the step")
    assert "train.py(31)" in first.sentence


def test_a_slow_link_is_told_with_what_it_reaches_and_what_the_fabric_gives():
    buckets = (
        CollectiveBucket("all-reduce", 1 << 26, 0.05, 0.04, 1e9),
        CollectiveBucket("all-reduce", 1 << 10, 0.0, 0.0, None),
    )
    first, *_ = advice_for(PLANTED["link"], buckets=buckets)
    assert first.sentence.endswith("at 1 GB/s, where the fabric gives 400.")


def test_exposed_communication_at_the_speed_of_the_fabric_is_to_be_hidden():
    buckets = (CollectiveBucket("all-reduce", 1 << 26, 0.05, 0.04, 380e9),)
    first, *_ = advice_for(PLANTED["link"], buckets=buckets)
    assert first.cause == "communication"
    assert "bucket_cap_mb" in first.how


def test_a_throttled_device_is_told_in_the_words_of_the_run():
    first, *_ = advice_for(PLANTED["clocks"], clocks="Clocks fell to 60 %: power cap.")
    assert first.sentence == "Clocks fell to 60 %: power cap."


def test_causes_come_before_improvements_and_both_by_their_gain():
    situation = gpu_step(
        idle={"synchronisation": 4 * MS, "loader": 8 * MS},
        elementwise=replace(USUAL["elementwise"], alone=100 * MS, busy=100 * MS),
    )
    assert [advice.cause for advice in advice_for(situation)[:3]] == ["loader", "synchronisation", "compile"]


def test_what_was_measured_takes_the_place_of_what_was_predicted():
    situation = PLANTED["loader"]
    step = situation.step
    measured = Verified(step / 1.5, step / 1.6, step / 1.4, 6)
    what_ifs = [
        replace(what_if, verified=measured) if what_if.name == "free loader" else what_if
        for what_if in predict(situation)
    ]
    first, *_ = diagnose(AdviceEvidence(situation, what_ifs))
    assert (first.gain, first.low, first.high) == pytest.approx((50, 40, 60))
