"""An explained step as what-ifs take it: what is not said outright is taken from what is known."""

from trainmark.explain.explanation import (
    Agreement,
    ClassTime,
    ExplainedSubject,
    Explanation,
    IdleTime,
    Memory,
    MemoryPart,
)
from trainmark.explain.what_if.situation import TrainingSettings, situation_of

MILLISECOND = 1_000_000


def step(**parts) -> Explanation:
    """A step of 100 ms."""
    agreement = Agreement(profiled=0.1, measured=None)
    return Explanation(ExplainedSubject("it"), 1, 100 * MILLISECOND, agreement, **parts)


def test_a_wait_for_a_collective_beside_the_device_is_exposed_communication():
    classes = (ClassTime("matrix product", 40 * MILLISECOND, 40 * MILLISECOND, 4),)
    idle = (
        IdleTime("communication", 50 * MILLISECOND, 2),
        IdleTime("launch", 10 * MILLISECOND, 5),
    )
    situation = situation_of(step(classes=classes, idle=idle), TrainingSettings(world_size=2), "cpu")
    assert round(situation.exposed, 9) == 0.05
    assert set(situation.idle) == {"launch"} == set(situation.gaps)
    parts = sum(part.alone for part in situation.parts) + sum(situation.idle.values())
    assert round(parts, 9) == situation.step == 0.1


def test_a_wait_adds_to_what_collectives_on_the_device_take():
    classes = (ClassTime("communication", 20 * MILLISECOND, 30 * MILLISECOND, 2),)
    idle = (IdleTime("communication", 80 * MILLISECOND, 2),)
    situation = situation_of(step(classes=classes, idle=idle), TrainingSettings(world_size=2), "cuda")
    assert round(situation.exposed, 9) == 0.1 and round(situation.hidden, 9) == 0.01


def test_parameters_that_nobody_declares_are_those_that_the_memory_holds():
    memory = Memory(peak=10_000, reserved=None, parts=(MemoryPart("weights", 4_000),))
    explanation = step(memory=memory)
    assert situation_of(explanation, TrainingSettings(), "cuda").parameters == 1_000
    assert situation_of(explanation, TrainingSettings(), "cuda", parameters=7).parameters == 7
    assert situation_of(step(), TrainingSettings(), "cuda").parameters is None
