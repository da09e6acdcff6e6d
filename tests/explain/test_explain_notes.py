"""Notes in Chinese: each is made by what makes it in English, so that no template can fall behind."""

import re
from dataclasses import replace

import pytest
from explain_documents import resnet50

from trainmark.base.typed_json import decode
from trainmark.events import DeviceSample
from trainmark.explain.agreement import slowdown
from trainmark.explain.difference import difference
from trainmark.explain.difference_page import difference_page
from trainmark.explain.explained_trial import keep_explanation
from trainmark.explain.explanation import CollectiveBucket, Explanation, Kernel, MemoryPart, RankTime
from trainmark.explain.page import explanation_page
from trainmark.explain.ranks import link_evidence
from trainmark.measure.doubts import DoubtCode, doubt
from trainmark.measure.figure import Interval, Ratio
from trainmark.store.files import read_object
from trainmark.view import html, markdown
from trainmark.view.catalogue import translated, with_messages
from trainmark.view.message import _

ENGLISH = re.compile("[a-z]{3,} [a-z]{2,} [a-z]{2,}")


def assert_chinese(notes):
    assert notes
    for note in notes:
        assert not ENGLISH.search(translated(note, "zh")), note
        numbers = re.findall(r"\d[\d.,]*\d|\d", note)
        assert all(number in translated(note, "zh") for number in numbers), note


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
    for render in (markdown.render, html.render):
        shown = render(difference_page(change), "zh")
        assert translated(change.notes[0], "zh").split("（")[0][:12] in shown


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


def test_a_stored_explanation_is_shown_in_chinese_after_it_was_read(tmp_path):
    doubts = (doubt(DoubtCode.NOISY_TRIALS, spread="10.9 %").text,)
    notes = compared(samples=128.0).notes
    keep_explanation(tmp_path, replace(resnet50(), doubts=doubts, notes=notes))
    document = read_object(tmp_path / "explanation.json")
    read = decode(Explanation, with_messages(document))
    assert (read.notes, read.doubts) == (notes, doubts)
    assert_chinese([*read.notes, *read.doubts])
    assert decode(Explanation, document) == read


def test_what_is_known_of_holders_of_memory_is_shown_in_chinese():
    one = resnet50()
    held = (
        MemoryPart(
            "weights",
            97 << 20,
            _("half-precision copies by autocast"),
            _("{kind} frees {freed}", kind=_("sharding"), freed="48.50 MiB"),
        ),
    )
    told = replace(one, memory=replace(one.memory, parts=held))
    for render in (markdown.render, html.render):
        shown = render(explanation_page(told), "zh")
        assert "autocast 的半精度副本" in shown
        assert "分片可释放 48.50 MiB" in shown
