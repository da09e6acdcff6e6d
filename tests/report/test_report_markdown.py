import re
from dataclasses import replace

import pytest
from run_pages import as_markdown
from sample_documents import GPU, cpu, empty, h200, hostile, result, single

from trainmark.audit.audit import audit_report, reports_at
from trainmark.view.markdown import code, fence, plain


def tables(text):
    """Runs of table lines outside code blocks, as lists of cells."""
    all_tables, current = [], []
    for line in re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text).splitlines():
        if line.startswith("|"):
            current.append(re.split(r"(?<!\\)\|", line)[1:-1])
        elif current:
            all_tables.append(current)
            current = []
    return [*all_tables, current] if current else all_tables


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("document", [h200(), cpu()], ids=["h200", "cpu"])
def test_the_audit_finds_device_and_logs_in_our_own_reports(document, lang, tmp_path):
    (tmp_path / "report.md").write_text(as_markdown(document, lang), encoding="utf-8")
    (report,) = reports_at(tmp_path / "report.md", {})
    assert not [finding for finding in audit_report(report) if finding.code.startswith("missing-")]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "document", [h200(), cpu(), empty(), hostile()], ids=["h200", "cpu", "empty", "hostile"]
)
def test_every_row_of_every_table_has_as_many_cells_as_its_header(document, lang):
    rendered_tables = tables(as_markdown(document, lang))
    assert rendered_tables
    for table in rendered_tables:
        assert {len(row) for row in table} == {len(table[0])}


@pytest.mark.parametrize(("lang", "case"), [("en", "case"), ("zh", "用例")])
def test_there_is_one_table_of_results_with_the_columns_of_the_published_ones(lang, case):
    header = f"| {case} | node_num | gpu_num_per_node | batch_size_per_device | images/s | "
    assert as_markdown(h200(), lang).count(header) == 1


def test_the_page_begins_with_the_subject_the_figure_and_the_verdict():
    lines = list(filter(None, as_markdown(single()).splitlines()))
    assert lines[1] == "**ResNet-50 v1.5 at 224², PyTorch 2.8 AMP, batch 256, 1 × H200**"
    assert re.fullmatch(r"2,9\d\d\.\d images/s \[2,\d{3}, 2,\d{3}\], n = 6", lines[2])
    assert re.fullmatch(r"> Reliable to ±0\.\d %\.", lines[3])


def test_a_row_carries_its_interval_and_says_where_confidence_falls_short():
    text = as_markdown(h200())
    row = next(line for line in text.splitlines() if "| 1 | 4 | 256 |" in line)
    assert re.search(r"\| \[[\d,]+, [\d,]+\] \(93\.8 %\) \|", row)


def test_a_doubt_is_a_mark_in_the_table_and_a_sentence_under_it():
    text = as_markdown(h200())
    assert "straggler<sup>1</sup> data-bound<sup>2</sup>" in text
    assert "<sup>1</sup> straggler (caution): pytorch amp/dynamic b256 1n8g: Rank 5 (gpu-07) ends" in text


def test_chinese_names_the_doubt_and_says_its_sentence():
    text = as_markdown(h200(), "zh")
    assert "受数据读取限制<sup>2</sup>" in text
    assert "训练步有 4.1% 的时间在等待数据" in text


def test_a_missing_baseline_reads_not_available():
    text = as_markdown(replace(h200(), results=(result(replace(GPU, devices_per_node=8), 100.0),)))
    row = next(line for line in text.splitlines() if "| 1 | 8 | 256 |" in line)
    assert row.split(" | ")[5] == "n/a"


def test_missing_facts_are_left_out():
    text = as_markdown(h200())
    assert "not found" not in text
    assert "dali" not in text
    assert "nccl: 2.27.3" in text


def test_a_run_without_a_result_says_so_and_gives_the_reasons():
    text = as_markdown(empty())
    assert "No figure" in text
    assert "CUDA out of memory" in text


def test_hostile_text_brings_in_no_tag_and_no_hidden_character():
    text = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", as_markdown(hostile()))
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert set(re.findall(r"</?(\w+)", outside_code)) <= {"details", "summary", "sup", "br"}
    assert not re.search("[\x1b\u202e\u2028]", text)


def test_a_block_is_fenced_by_more_backticks_than_it_holds():
    assert fence("a\n````\nb").startswith("`````\n")


def test_a_code_span_survives_backticks_and_bars():
    assert code("a`|b`") == "`` a`\\|b` ``"


def test_plain_text_cannot_become_markup():
    assert plain("*a* <b> [c](d) | e\nf") == r"\*a\* &lt;b&gt; \[c\](d) \| e f"
