from dataclasses import replace

from run_pages import as_lines
from sample_documents import BUSY, GPU, cpu, h200, hostile, result

from trainmark.measure.figure import Interval, Ratio
from trainmark.pages import number
from trainmark.pages.run.results import result_table
from trainmark.view import terminal


def result_lines(results):
    return terminal.lines([result_table(results)])


def test_a_line_reads_as_the_style_shows_it():
    made = replace(
        result(replace(GPU, devices_per_node=8), 6154.66),
        throughput=6154.66,
        interval=Interval(6130.2, 6172.9, 0.96),
        speedup=Ratio(7.67, Interval(7.61, 7.71, 0.95)),
        efficiency=Ratio(0.959, None),
        doubts=h200().results[3].doubts[:1],
    )
    assert result_lines([made]) == [
        "pytorch  amp/dynamic  b256  1n8g  6,154.7 img/s  [6,130, 6,173]  n=6"
        "  ×7.67 [7.61, 7.71]  96 %   ! data-bound"
    ]


def test_the_first_lines_are_the_subject_the_figure_and_the_verdict():
    only = (result(replace(GPU, device="NVIDIA H200"), 2904.4, doubts=(BUSY,)),)
    subject, figure, verdict, _, line, _, doubt = as_lines(replace(h200(), results=only))
    assert subject == "ResNet-50 v1.5 at 224², PyTorch 2.8 AMP, batch 256, 1 × H200"
    assert figure.endswith("], n = 6")
    assert verdict == "Do not rely on this: the host was busy in 4 of 6 trials."
    assert doubt.startswith("! host-busy: In 4 of 6 trials: Other processes used 24%")
    assert line.split()[0] == "pytorch"


def test_chinese_comes_first_too():
    only = (result(GPU, 2904.4, doubts=(BUSY,)),)
    lines = as_lines(replace(h200(), results=only), lang="zh")
    assert lines[2] == "不要依赖此结果：主机繁忙（6 次试验中的 4 次）。"


def test_one_device_has_no_speedup_over_itself():
    (line,) = result_lines([result(GPU, 100.0, 100.0)])
    assert "×" not in line


def test_columns_stand_under_each_other():
    lines = result_lines(h200().results)
    assert len({line.index(" img/s") for line in lines}) == 1
    assert len({line.index("n=") for line in lines}) == 1


def test_a_result_without_interval_or_baseline_says_so():
    (line,) = result_lines([replace(cpu().results[1], speedup=None, efficiency=None)])
    assert "[no interval]" in line
    assert "× n/a" in line


def test_what_tells_two_cases_apart_is_shown():
    lines = result_lines([result(GPU, 100.0), result(replace(GPU, layout="nchw"), 90.0)])
    assert "nhwc" in lines[0]
    assert "nchw" in lines[1]


def test_a_line_stays_one_line_without_terminal_control():
    assert all("\n" not in line and "\x1b" not in line for line in result_lines(hostile().results))


def test_no_results_give_no_lines():
    assert result_lines([]) == []


def test_digits_follow_the_size_of_the_figure():
    assert [number.throughput(v) for v in (12.412, 903.21, 6154.66, 22283.4)] == [
        "12.41",
        "903.2",
        "6,154.7",
        "22,283",
    ]


def test_an_interval_of_full_confidence_carries_no_remark():
    assert number.interval(Interval(1234, 1250, 0.96)) == "[1,234, 1,250]"
    assert number.interval(Interval(1234, 1250, 0.9375)) == "[1,234, 1,250] (93.8 %)"
