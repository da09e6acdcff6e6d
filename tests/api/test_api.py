"""What `import trainmark` gives: typed subjects, as dictionaries, data frames and pages."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fabricated_runs import CREATED, fabricate_program

import trainmark as tm
from trainmark.base.errors import UserError

NAMES = ("compare", "explain", "history", "ledger", "load", "open", "read", "run")
LOG = Path(__file__).parents[1] / "golden" / "inputs" / "logs" / "nanogpt.log"
PROGRAM = """
import trainmark as tm
run = tm.open("latest")
reveal_type(run.results[0].throughput)
reveal_type(tm.compare(run, run).to_dict())
reveal_type(tm.history().cases)
reveal_type(tm.ledger(device="h100").entries)
reveal_type(tm.run("train.py", steps=200))
reveal_type(tm.read("train.log").runs[0].figure.throughput)
reveal_type(tm.explain(run))
"""


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    fabricate_program(folder, "before", "python train.py", [100.0, 101.0, 102.0])
    fabricate_program(folder, "after", "python train.py", [90.0, 91.0, 92.0], created=CREATED + 3600)
    return folder


def test_its_names_are_listed_and_documented():
    assert set(NAMES) <= set(dir(tm))
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert inspect.getdoc(getattr(tm, name))
        assert f"`tm.{name}(" in page
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tm.nothing


@pytest.mark.parametrize("kind", ["run", "comparison", "history", "ledger", "logs"])
def test_a_result_is_a_dictionary_a_text_and_a_page(runs, kind):
    made = {
        "run": lambda: tm.open("before", runs),
        "comparison": lambda: tm.compare("before", "after", runs=runs),
        "history": lambda: tm.history(runs=runs),
        "ledger": lambda: tm.ledger(model="gpt2", device="h100"),
        "logs": lambda: tm.read(LOG),
    }[kind]()
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert str(made).strip()
    assert made._repr_html_().lstrip().startswith("<")
    with pytest.raises(AttributeError):
        made.name_of_nothing = 1


def test_tables_are_data_frames(runs):
    assert list(tm.open("before", runs).trials.to_pandas()["throughput"]) == pytest.approx([100, 101, 102])
    compared = tm.compare("before", "after", runs=runs).to_pandas()
    assert list(compared["ratio"]) == pytest.approx([91 / 101], rel=0.01)
    assert len(tm.history(runs=runs).to_pandas()) == 2
    assert set(tm.ledger(device="h100").to_pandas()["source"])
    (row,) = tm.read(LOG).to_pandas().itertuples()
    assert row.unit == "tokens/s" and row.value > 0


def test_what_a_person_can_mend_is_one_sentence(runs):
    for wrong in (
        lambda: tm.open("nothing", runs),
        lambda: tm.compare("before", runs=runs),
        lambda: tm.history(runs=runs, case="nothing"),
        lambda: tm.ledger(device="nothing"),
        lambda: tm.read("nothing.log"),
        lambda: tm.explain("nothing", runs=runs),
    ):
        with pytest.raises(UserError, match=r"^[^\n]+[.]$"):
            wrong()


def test_mypy_sees_its_types(tmp_path):
    program = tmp_path / "notebook.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)],
        capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    revealed = [line.partition('"')[2] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert len(revealed) == 7, done.stdout
    assert not [each for each in revealed if "Any" in each.replace("dict[str, Any]", "")], revealed
