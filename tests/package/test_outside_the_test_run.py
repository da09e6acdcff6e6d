"""What no test run runs must still fit the code: the mutants' texts, and what the fuzzers import."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mutants.mutant import listed  # noqa: E402

FUZZERS = [path for path in sorted((ROOT / "fuzz").glob("*.py")) if "import atheris" not in path.read_text()]


def test_every_mutant_changes_text_that_stands_once_in_its_file():
    texts = {}
    stale = []
    for mutant in listed():
        path = ROOT / "src" / "trainmark" / mutant.file
        text = texts.setdefault(path, path.read_text(encoding="utf-8") if path.is_file() else "")
        if text.count(mutant.before) != 1 or mutant.before == mutant.after:
            stale.append((mutant.file, mutant.before))
    assert texts and stale == []


@pytest.mark.parametrize("path", FUZZERS, ids=lambda path: path.stem)
def test_a_fuzzer_imports_what_is_there(path, monkeypatch):
    monkeypatch.syspath_prepend(str(path.parent))
    spec = importlib.util.spec_from_file_location(f"fuzz_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
