"""Notes in Chinese: each is made by what makes it in English, so that no template can fall behind."""

import re
from dataclasses import replace

import pytest
from explain_documents import resnet50

from trainmark.events import DeviceSample
from trainmark.explain.agreement import slowdown
from trainmark.explain.difference import difference
from trainmark.explain.explanation import CollectiveBucket, Kernel, MemoryPart, RankTime
from trainmark.explain.ranks import link_evidence
from trainmark.explain.report import difference_text, markdown, page
from trainmark.explain.report.language.chinese import sentence
from trainmark.measure.doubts import DoubtCode, doubt
from trainmark.measure.figure import Interval, Ratio

ENGLISH = re.compile("[a-z]{3,} [a-z]{2,} [a-z]{2,}")


def assert_chinese(notes):
    assert notes
    for note in notes:
        assert not ENGLISH.search(sentence(note, "zh")), note
        numbers = re.findall(r"\d[\d.,]*\d|\d", note)
        assert all(number in sentence(note, "zh") for number in numbers), note


def compared(measured=None, kernels=(), **subject):
    one = resnet50()
    first, *rest = one.classes
    other = replace(
        one,
        subject=replace(one.subject, **subject),
        classes=(replace(first, kernels=(*first.kernels, *kernels)), *rest),
    )
    return difference(one, other, measured)


@pytest.mark.parametrize(
    "about",
    [
        {"samples": 128.0},
        {"samples": None},
        {"world_size": 4},
        {"measured": Ratio(1.07, None)},
        {"measured": Ratio(1.07, Interval(1.01, 1.12, 0.95))},
        {"measured": Ratio(1.07, Interval(0.4, 0.5, 0.95))},
        {"kernels": (Kernel("new_kernel", 90_000_000, 5),)},
    ],
)
def test_what_a_difference_notes(about):
    change = compared(**about)
    assert_chinese(change.notes)
    for shown in (difference_text.markdown(change, "zh"), page.render_difference(change, "zh")):
        assert sentence(change.notes[0], "zh").split("（")[0][:12] in shown


@pytest.mark.parametrize("throttle", [(), ("sw-power-cap", "hw-thermal")])
@pytest.mark.parametrize(("power", "temperature"), [(350.0, 60.0), (None, 60.0), (350.0, None), (None, None)])
def test_what_low_clocks_note(throttle, power, temperature):
    samples = [
        DeviceSample(
            *("cuda:0", float(second), float(second)),
            utilisation=1.0,
            power_watts=power,
            temperature_c=temperature,
            clock_mhz=990.0,
            clock_max_mhz=1980.0,
            throttle=throttle,
        )
        for second in range(10)
    ]
    assert_chinese([slowdown(samples).sentence])


def test_what_ranks_note():
    ranks = [
        RankTime(rank=number, step=1.0, compute=0.9, exposed=0.1, hidden=0.0, idle=0.0, late=late, node="b")
        for number, late in ((0, 0.0), (1, 0.3))
    ]
    buckets = [
        CollectiveBucket("all_reduce #1", size, 0.05, 0.04, rate)
        for size, rate in ((25e6, 5e9), (None, None))
    ]
    assert_chinese([*link_evidence(ranks, buckets, 5e9), *link_evidence(ranks, buckets, None)])


@pytest.mark.parametrize(
    "note",
    [
        "Rank 3: the timing pass recorded no kernels; may this user profile the GPU?",
        "Memory: The program did not tell the peak of its memory.",
        "Of the measured steps: " + doubt(DoubtCode.NOISY_TRIALS, spread="10.9 %").message,
        "bf16 was not verified: no setting of this workload makes it",
    ],
)
def test_a_sentence_behind_its_subject(note):
    assert_chinese([note])


def test_what_is_known_of_holders_of_memory_is_shown_in_chinese():
    one = resnet50()
    held = (MemoryPart("weights", 97 << 20, "half-precision copies by autocast", "sharding frees 48.50 MiB"),)
    told = replace(one, memory=replace(one.memory, parts=held))
    for shown in (markdown.render(told, "zh"), page.render(told, "zh")):
        assert "autocast 的半精度副本" in shown
        assert "分片可释放 48.50 MiB" in shown
