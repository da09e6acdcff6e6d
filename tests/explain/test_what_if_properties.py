"""What holds for every what-if of every step."""

import re
from dataclasses import replace

from builders_what_if import A100, H200
from hypothesis import given
from hypothesis import strategies as st

from trainmark.explain.explanation import MeasuredPeaks
from trainmark.explain.kernel_classes import PRODUCT_CLASSES
from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.situation import MEMORY_CLASSES, Situation, StepPart, TrainingSettings
from trainmark.view.catalogue import translated

seconds = st.floats(1e-5, 1.0)
idle_seconds = st.floats(0.0, 1.0)
NAMES = (*PRODUCT_CLASSES, *MEMORY_CLASSES, "optimiser", "other")
CAUSES = ("launch", "synchronisation", "loader", "dependency", "other")
# What only takes waiting away leaves every class as it is.
REMOVED = {
    "graph": ("launch",),
    "no launch gaps": ("launch",),
    "no synchronisation": ("synchronisation", "launch"),
    "free loader": ("loader",),
}


@st.composite
def parts(draw, name):
    alone = draw(seconds)
    flop = draw(st.one_of(st.none(), st.floats(1e6, 1e15))) if name in PRODUCT_CLASSES else None
    size = draw(st.one_of(st.none(), st.floats(1e3, 1e12)))
    floor = draw(st.one_of(st.none(), st.floats(0.0, 1.0)))
    launches = draw(st.integers(1, 2000))
    return StepPart(name, alone, alone, launches, flop, size, None if floor is None else floor * alone)


@st.composite
def situations(draw):
    classes = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    own = [draw(parts(name)) for name in classes]
    if draw(st.booleans()):
        exposed, hidden = draw(idle_seconds), draw(idle_seconds)
        own.append(StepPart("communication", exposed, exposed + hidden, 10))
    idle = {cause: draw(idle_seconds) for cause in CAUSES}
    precision = draw(st.sampled_from(["fp32", "tf32", "amp", "bf16", None]))
    framework = draw(st.sampled_from(["pytorch", "jax", "tensorflow", None]))
    own_update = draw(st.booleans())
    return Situation(
        step=sum(part.alone for part in own) + sum(idle.values()),
        device=draw(st.sampled_from(["cuda", "cpu"])),
        parts=tuple(own),
        idle=idle,
        gaps={"launch": draw(st.integers(0, 1000))},
        settings=TrainingSettings(
            framework=framework, precision=precision, layout="NCHW", batch=8, compiles_update=own_update
        ),
        peaks=MeasuredPeaks(draw(st.floats(1e9, 1e15)), draw(st.floats(1e9, 1e13))),
        datasheet=H200,
        others=(A100,),
        parameters=draw(st.one_of(st.none(), st.integers(1, 10**9))),
        clock=draw(st.one_of(st.none(), st.floats(0.1, 1.0))),
    )


@given(situations())
def test_an_interval_encloses_its_prediction_and_says_what_it_rests_on(situation):
    for what_if in predict(situation):
        assert 0 < what_if.low <= what_if.seconds <= what_if.high
        assert what_if.basis
        assert what_if.how
        assert what_if.why.endswith(".")
        for text in (what_if.title, what_if.why, what_if.basis):
            assert not re.search("[a-z]{3,} [a-z]{2,} [a-z]{2,}", translated(text, "zh")), text


@given(situations())
def test_taking_waiting_away_leaves_every_class_and_every_other_wait(situation):
    for what_if in predict(situation):
        if what_if.name in REMOVED:
            waits = sum(time for cause, time in situation.idle.items() if cause not in REMOVED[what_if.name])
            left = sum(part.alone for part in situation.parts) + waits
            assert left * (1 - 1e-9) <= what_if.seconds <= situation.step * (1 + 1e-9)


@given(situations())
def test_floors_are_no_longer_than_the_step_and_no_shorter_than_its_idle_time(situation):
    for what_if in predict(situation):
        if what_if.name == "floors":
            assert sum(situation.idle.values()) * (1 - 1e-9) <= what_if.seconds
            if situation.part("communication") is None:
                assert what_if.seconds <= situation.step * (1 + 1e-9)


@given(situations(), st.sampled_from(CAUSES), st.floats(0.001, 1.0))
def test_a_step_that_waits_longer_for_anything_is_never_predicted_shorter(situation, cause, longer):
    slower = replace(
        situation,
        step=situation.step + longer,
        idle={**situation.idle, cause: situation.idle[cause] + longer},
    )
    before = {what_if.name: what_if.seconds for what_if in predict(situation)}
    after = {what_if.name: what_if.seconds for what_if in predict(slower)}
    for name in before.keys() & after.keys() - {"no synchronisation"}:
        assert after[name] >= before[name] * (1 - 1e-9)


@given(situations())
def test_a_larger_batch_never_costs_more_for_each_sample(situation):
    for what_if in predict(situation):
        if what_if.name == "batch ×2":
            assert what_if.seconds <= situation.step * (1 + 1e-9)
