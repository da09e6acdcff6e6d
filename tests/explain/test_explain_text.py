"""Explanations in the terminal, as Markdown and as JSON."""

import json
import re
from dataclasses import replace

import pytest
from explain_documents import STEPS, cpu, difference, hostile, refused, resnet50, two_ranks
from rich.cells import cell_len as display_width

from trainmark.base.typed_json import decode
from trainmark.explain import as_json, figures, tables
from trainmark.explain.difference_page import difference_page
from trainmark.explain.explanation import (
    Agreement,
    ClassTime,
    ExplainedSubject,
    Explanation,
    IdleTime,
    Memory,
    MemoryPart,
    ModuleTime,
    Overlap,
)
from trainmark.explain.page import explanation_page
from trainmark.explain.sentences import where_sentence
from trainmark.explain.what_if.changes import CHANGES
from trainmark.measure.doubts import DoubtCode, doubt
from trainmark.view import html, markdown, terminal
from trainmark.view.blocks import Table, plain_text, shown_in
from trainmark.view.catalogue import translated
from trainmark.view.terminal import wrapped


def lines_of(explanation, width=None, lang="en"):
    return terminal.lines(explanation_page(explanation).blocks, lang, width)


def as_markdown(explanation, lang="en"):
    return markdown.render(explanation_page(explanation), lang)


def as_html(explanation, lang="en"):
    return html.render(explanation_page(explanation), lang)


def texts(table):
    return [[plain_text(cell) for cell in row] for row in table.rows]


ALL = {"resnet50": resnet50, "refused": refused, "two_ranks": two_ranks, "cpu": cpu}


def number(text):
    return float(text.replace(",", "").removesuffix(" %"))


@pytest.mark.parametrize("name", ["resnet50", "two_ranks", "cpu"])
def test_the_rows_of_a_step_add_up_to_its_last_row_as_they_are_shown(name):
    *rows, whole = texts(tables.step_table(ALL[name]()))
    for column in (1, 2):
        assert sum(number(row[column]) for row in rows) == pytest.approx(number(whole[column]), abs=1e-9)
    assert whole[2] == "100.0 %"


def test_every_row_is_within_a_unit_of_what_it_rounds():
    texts = figures.apportioned([1, 1, 1, 999_997], 1_000_000 / 100, 1)
    assert sum(map(number, texts)) == 100.0
    assert [abs(number(text) - exact) < 0.1 for text, exact in zip(texts, (0, 0, 0, 100), strict=True)] == [
        True
    ] * 4


def test_figures_of_a_class_are_of_one_step():
    row = next(row for row in texts(tables.step_table(resnet50())) if row[0] == "convolution")
    assert row[3:] == ["158", "3.15", "31.2", "19.80", "2.14"]


@pytest.mark.parametrize(("floor", "shown"), [(500, "100"), (499, "> 100"), (1, "> 100")])
def test_a_floor_of_next_to_nothing_is_given_no_exact_ratio(floor, shown):
    own = ClassTime("copy", alone=50_000, busy=50_000, launches=1, floor=floor)
    (row, _) = tables.step_table(replace(cpu(), classes=(own,), overlaps=(), idle=())).rows
    assert row[-1] == shown


def test_a_small_peak_is_divided_in_mebibytes():
    parts = (MemoryPart("other", 650 << 20), MemoryPart("activations", 1 << 20, "layer1"))
    table = tables.memory_table(replace(cpu(), memory=Memory(peak=651 << 20, reserved=None, parts=parts)))
    assert (table.header[2], [row[2] for row in table.rows]) == ("MiB", ["650.0", "1.0"])
    assert tables.memory_table(resnet50()).header[2] == "GiB"


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_to_do_in_words_is_told_in_chinese_and_is_nothing_to_type(change):
    if not change.words:
        assert change.lines[""]
        return
    advice = replace(resnet50().advice[0], how=change.words, is_line=False)
    told = replace(resnet50(), advice=(advice,), what_ifs=())
    assert translated(change.words, "zh") != change.words
    assert translated(change.words, "zh") in as_html(told, lang="zh")
    assert f"   {change.words}" in as_markdown(told).replace("\\", "")
    assert f"     {change.words}" in lines_of(told, 200)


def test_profiled_steps_that_were_faster_cost_nothing():
    text = "\n".join(lines_of(replace(resnet50(), overhead=-0.003), 200))
    assert "Profiling costs 0.0 % of a step." in text


def test_only_a_line_to_type_can_be_copied():
    def advised(is_line):
        advice = replace(resnet50().advice[0], is_line=is_line)
        return as_html(replace(resnet50(), advice=(advice,), what_ifs=()))

    assert [advised(is_line).count('class="copy"') for is_line in (True, False)] == [1, 0]


def test_a_floor_that_a_class_beats_is_not_told_as_one():
    explanation = resnet50()
    beaten = [replace(own, floor=own.floor and 2 * own.busy) for own in explanation.classes]
    first = lines_of(replace(explanation, classes=tuple(beaten)), 200)[1]
    assert "60.2 % of the step is convolution;" in first


def test_the_answer_comes_first():
    first = lines_of(resnet50(), 200)[:3]
    assert first[0].startswith("ResNet-50, bf16, batch 256 on NVIDIA H200")
    assert first[1] == (
        "70.12 ms a step, 3,651.0 images/s. 60.2 % of the step is convolution, 2.1 × its floor;"
        " the device is idle for 2.0 % (mostly: host too late)."
    )
    assert first[2].startswith("First: A compiler fuses")
    assert first[2].endswith("(throughput +27.3 % [+21.3, +33.6])")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [80, 120])
def test_all_but_what_is_to_be_typed_fits_the_terminal(name, lang, width):
    explanation = ALL[name]()
    typed = {line.strip() for advice in explanation.advice for line in advice.how.splitlines()}
    wide = [
        line
        for line in lines_of(explanation, width, lang)
        if display_width(line) > width and line.strip() not in typed
    ]
    assert wide == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_refused_explanation_gives_its_reason_and_no_share_of_time(lang):
    explanation = replace(refused(), memory=None, notes=())
    shown = "\n".join(lines_of(explanation, 200, lang))
    reason = explanation.agreement.refusal
    assert reason in shown
    bounds = translated(where_sentence(explanation), lang)
    assert bounds in shown
    rest = shown.replace(reason, "").replace(bounds, "")
    assert re.findall(r"[\d.]+ %", rest) == ["10.3 %", "0.8 %"]  # the difference and the overhead
    assert "convolution" not in rest and "卷积" not in rest


def test_bounds_hold_whatever_part_the_profiler_made_longer_or_missed():
    classes = (ClassTime("convolution", 600, 600, 1), ClassTime("copy", 400, 400, 1))
    for total, real, expected in ((1000, 900, (500, 600)), (1000, 1100, (600, 700))):
        agreement = Agreement(total / 1e9, real / 1e9, "they differ")
        explanation = Explanation(ExplainedSubject("x"), 1, total, agreement, classes=classes)
        part, low, high = figures.bounded_shares(explanation)[0]
        assert part.name == "convolution"
        assert (low * real, high * real) == pytest.approx(expected)


def test_the_doubts_of_the_measured_steps_come_first():
    told = doubt(DoubtCode.NOISY_TRIALS, spread="10.9 %").text
    explanation = replace(resnet50(), doubts=(told,))
    assert lines_of(explanation, 200)[0] == f"Caution: {told}"
    assert lines_of(explanation, 200, "zh")[0] == f"注意：{translated(told, 'zh')}"
    assert '<p class="verdict is-caution">Caution: ' in as_html(explanation)
    assert 'class="verdict is-reliable"' not in as_html(explanation)
    assert 'class="verdict is-reliable"' in as_html(resnet50())
    assert as_markdown(explanation).splitlines()[2].startswith("> Caution: ")


def test_another_rate_of_the_run_is_told_beside_the_profiled_one():
    rate = figures.samples_per_second(resnet50())
    same, other = (replace(resnet50(), measured_rate=rate * times) for times in (1.01, 0.3))
    assert "The run measured" not in "\n".join(lines_of(same, 200))
    assert "The run measured" in "\n".join(lines_of(other, 200))
    assert "该次运行测得" in "\n".join(lines_of(other, 200, "zh"))


def test_a_gain_that_may_be_none_is_said_to_be_and_is_not_green():
    explanation = resnet50()
    advice = (replace(explanation.advice[0], low=-12.1, high=37.0), *explanation.advice[1:])
    open_gain = replace(explanation, advice=advice)
    assert "may be nothing)" in "\n".join(lines_of(open_gain, 200))
    assert "; may be nothing)" in as_markdown(open_gain)
    assert 'class="gain is-open"' in as_html(open_gain)
    assert 'class="gain is-open"' not in as_html(explanation)


def test_on_a_cpu_nothing_is_launched():
    explanation = resnet50()
    on_cpu = replace(explanation, subject=replace(explanation.subject, kind="cpu"))
    assert "host too late" in "\n".join(lines_of(explanation, 200))
    assert "host too late" not in "\n".join(lines_of(on_cpu, 200)) + as_markdown(on_cpu)
    assert "Python between operators" in "\n".join(lines_of(on_cpu, 200))


def test_json_gives_null_for_a_refused_share():
    tree = as_json.tree(refused())
    assert {row["share"] for row in tree["classes"] + tree["idle"] + tree["overlaps"]} == {None}
    assert tree["agreement"]["difference"] == pytest.approx(0.1031, abs=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_what_json_says_is_read_back_as_it_was(name):
    explanation = ALL[name]()
    assert decode(Explanation, json.loads(json.dumps(as_json.tree(explanation)))) == explanation


def test_the_shares_of_json_add_up_to_one():
    tree = as_json.tree(resnet50())
    rows = tree["classes"] + tree["idle"] + tree["overlaps"]
    assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-12)
    assert sum(row.get("alone", row.get("nanoseconds")) for row in rows) == tree["total"]


def test_a_prediction_stands_beside_what_came_of_it():
    row = tables.what_if_table(resnet50()).rows[0]
    assert row[1:] == ["55.10", "[52.50, 57.80]", "+27.3 %", "54.80", "+0.5 %"]


def test_ranks_and_collectives_are_listed_where_there_are_several():
    lines = lines_of(two_ranks(), 100)
    assert any(
        line.split() == ["1", "node-b", "101.30", "71.10", "28.80", "9.00", "1.40", "2.40"] for line in lines
    )
    assert any(line.startswith("all-reduce 5") and line.endswith("73 %") for line in lines)
    assert not any("all-reduce" in line for line in lines_of(resnet50(), 100))


def test_hostile_names_stay_one_line_of_text_each():
    shown = lines_of(hostile(), 80)
    assert not any("\x1b" in line or "\n" in line for line in shown)


def test_markdown_rows_keep_their_shape():
    blocks = re.findall(r"(?:^\|.*\n)+", as_markdown(hostile()), re.MULTILINE)
    assert len(blocks) >= 3
    for block in blocks:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_markdown_has_every_section_of_the_terminal():
    titles = re.findall(r"^## (.*)$", as_markdown(two_ranks()), re.MULTILINE)
    assert titles == [
        *("Where a step goes", "Advice", "Idle, by cause", "Longest kernels", "By module", "Ranks"),
        *("Collectives", "Memory", "Notes"),
    ]


def test_an_explanation_of_nothing_is_shown_without_an_error():
    empty = replace(cpu(), classes=(), idle=(), total=0, steps=0)
    assert lines_of(empty, 80)[0].startswith("train.py")


@pytest.mark.parametrize("per", ["step", "sample"])
def test_the_changes_of_a_difference_add_up_as_they_are_shown(per):
    (section,) = (
        block
        for block in difference_page(difference(per)).blocks
        if hasattr(block, "blocks") and block.title.startswith("Where")
    )
    (table,) = (block for block in shown_in(section.blocks, "terminal") if isinstance(block, Table))
    *rows, whole = texts(table)
    for column in (1, 2, 3):
        shown = [number(row[column].replace("−", "-")) for row in (*rows, whole)]
        assert sum(shown[:-1]) == pytest.approx(shown[-1], abs=1e-9)


def test_a_difference_names_its_largest_part():
    lines = terminal.lines(difference_page(difference()).blocks, "en", 80)
    assert lines[2:4] == [
        "A step takes 70.10 ms in A and 54.80 ms in B: −15.30 ms (−21.8 %).",
        "Most of it: elementwise, −6.400 ms.",
    ]
    assert "Only in" not in "".join(lines) and lines[-1].startswith("Both ran")


def test_json_of_a_difference_has_the_change_of_every_part():
    tree = as_json.difference_tree(difference())
    assert tree["change"] == pytest.approx(sum(row["change"] for row in tree["contributions"]))


def test_names_of_classes_and_causes_are_in_chinese():
    shown = "\n".join(lines_of(two_ranks(), 120, "zh"))
    for word in ("卷积", "通信", "空闲：同步", "激活", "被等待"):
        assert word in shown


def test_chinese_is_broken_at_the_width_and_not_before_punctuation():
    lines = wrapped("分析时每步 70.31 ms，不分析时 70.12 ms：相差 +0.3 %。" * 3, 30)
    assert len(lines) > 3
    assert all(display_width(line) <= 32 for line in lines)
    assert not any(line[0] in "，。：" for line in lines)


def test_what_has_the_same_name_in_two_kinds_stays_apart():
    explanation = replace(
        resnet50(),
        total=STEPS * 30,
        classes=(ClassTime("communication", STEPS * 10, STEPS * 10, STEPS),),
        idle=(IdleTime("communication", STEPS * 15, STEPS),),
        overlaps=(Overlap(("communication", "copy"), STEPS * 5),),
    )
    assert [row[0] for row in texts(tables.step_table(explanation))[:3]] == [
        "communication",
        "communication + copy",
        "idle: communication",
    ]


def test_the_larger_of_idle_time_and_the_longest_class_comes_first():
    whole = cpu()
    waiting = replace(whole, total=10 * whole.total, idle=(IdleTime("loader", 9 * whole.total, 3),))
    assert lines_of(waiting, 200)[1].startswith("612.3 ms a step. The device is idle for 90.0 %")


def test_the_module_that_all_are_in_stands_in_the_title():
    modules = tuple(ModuleTime(f"GPT_0 / Block_{place} / Linear", 10, 20, STEPS) for place in range(3))
    explanation = replace(resnet50(), modules=modules)
    assert tables.modules_title(explanation) == "By module of GPT_0"
    assert [row[0] for row in tables.modules_table(explanation).rows] == [
        f"Block_{place} / Linear" for place in range(3)
    ]
    assert tables.modules_title(resnet50()) == "By module"
