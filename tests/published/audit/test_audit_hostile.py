"""No text crashes the audit, and none makes it slow out of proportion."""

import hypothesis.strategies as st
import pytest
from hypothesis import given
from report_texts import CONSISTENT, LOGGED, findings

from trainmark.audit.report import UnreadableReportError, decoded

MARKUP = [
    "|",
    "||",
    "---|",
    "\n",
    "\n\n",
    "```\n",
    "~~~",
    "# ",
    "<table>",
    "<tr>",
    "<td rowspan=9>",
    "</table>",
]
OPENINGS = ["<!--", "<", "&#", "{'1n1g': {", "'speedup': 1}", "1n8g/a.log {1: 2}", "\x0c", "\u2028", "\ud800"]
WORDS = [
    "speedup",
    "加速比",
    "吞吐",
    "gpu num",
    "samples/s",
    "V100",
    "ResNet50",
    "TODO",
    "Time2train(sec)",
    "epochs",
]
NUMBERS = ["1,234.5", "9" * 400, "0", "-", "１", "1e999", ",", ";", "100%", "0000-99-99 99:99:99"]
LOGGED_WORDS = [
    "--mom 0.1 --wd 3.0517578125e-05",
    "world_size : 0",
    "batch_size : 0",
    "read 1 files from 2 directories",
    "2020-01-01 00:00:00 iter 1 ips: 0",
    "--warmup_batches 9 --train_batches 1",
]
PIECES = st.sampled_from([*MARKUP, *OPENINGS, *WORDS, *NUMBERS, *LOGGED_WORDS])


@given(st.text())
def test_any_text_is_survived(text):
    findings(text)


@given(st.lists(PIECES, max_size=60), st.sampled_from(["a.md", "a.html", "a.csv", "a.txt"]))
def test_any_mixture_of_what_reports_are_made_of_is_survived(pieces, name):
    findings("".join(pieces), name)


@given(st.sampled_from(sorted(CONSISTENT)), st.data())
def test_a_report_with_a_piece_cut_out_or_put_in_is_survived(name, data):
    text = CONSISTENT[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    findings(text[:start] + data.draw(PIECES) + text[end:], name)


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused(content):
    try:
        findings(decoded(content, "report"))
    except UnreadableReportError as error:
        assert "binary" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "|" * 2_000_000,
        "<html>" + "<!--" * 500_000,
        "<html>" + "<a " * 500_000,
        "<table><tr><td>" * 20_000,
        "`" * 2_000_000,
        "1," * 1_000_000,
        "取前" * 500_000,
        "[" * 1_000_000,
        "| gpu num | samples/s |\n|-|-|\n" + "| 1 | 100 |\n" * 50_000,
        "```\n" + "{" * 2_000_000 + "\n```",
    ],
    ids=lambda text: text[:12],
)
def test_long_monotony_ends(text):
    findings(text)


def test_a_file_of_twenty_megabytes_is_read_to_its_end():
    filler = ("A sentence about nothing in particular, with the number 12.5 in it. " * 300 + "\n\n") * 1_000
    assert len(filler) > 20_000_000
    (finding,) = findings(filler + LOGGED.replace("--mom 0.875", "--mom 0.125"))
    assert finding.code == "recipe-contradicted"
