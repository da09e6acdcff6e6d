"""The page on reading is enough to add a format: its example reads a log that nothing else does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainmark.logs.format import Format
from trainmark.logs.format_file import custom_format
from trainmark.logs.input import clean_blocks
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats
from trainmark.measure.log_figure import LogFacts, logged_figure

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reading.md").read_text()


def block(language: str, word: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (matching,) = [text for text in blocks if word in text]
    return matching


LINE = block("text", "Train Epoch: 0").rstrip("\n")
LOG = "".join(
    LINE.replace("0.512, 1000.00/s", f"0.512, {1000 + number % 3}.00/s") + "\n" for number in range(30)
).encode()


def written(folder: Path, word: str) -> Format:
    path = folder / "open-clip.yaml"
    path.write_text(block("yaml", word))
    return custom_format(path)


@pytest.mark.parametrize("word", [".*?Batch", "sign:"])
def test_the_format_of_the_page_reads_the_log_of_the_page(tmp_path, word):
    (run,) = read_runs(written(tmp_path, word), clean_blocks([b"Running with world size 8.\n" + LOG]), "log")
    figure = logged_figure(run.columns(), LogFacts(**run.facts()))
    assert figure.throughput == pytest.approx(1001, rel=0.001)
    assert (figure.unit, figure.world_size, figure.final_loss) == ("images", 8, 5.125)


def test_no_format_of_ours_takes_it_for_its_own():
    assert not [name for name, format in formats().items() if format.sign.search(LOG)]


def test_it_is_a_file_of_about_ten_lines():
    assert len(block("yaml", "sign:").splitlines()) <= 12
