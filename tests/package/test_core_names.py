"""The core knows no workload: what one is called, counts or is judged by stands in its declaration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "trainmark"
NAMES = re.compile(r"resnet|\bimages\b|image_size|\btop-?[15]\b|top[15]", re.IGNORECASE)
# The programs themselves, what deals with pictures on disk, and other people's results.
ELSEWHERE = (
    "workloads/",
    "data/",
    "logs/",
    "audit/",
    "cli/data",
    "audit/command.py",
    "cli/ledger.py",
    "cli/read.py",
    "pages/ledger.py",
    "forecast/series.py",
)


def names_in(code: str) -> Iterator[str]:
    """Yield identifiers, attributes and texts; docstrings may have examples."""
    tree = ast.parse(code)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, documented)]
    docstrings = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, (ast.Attribute, ast.arg, ast.keyword)):
            yield str(node.attr if isinstance(node, ast.Attribute) else node.arg)


def test_no_line_of_the_core_names_a_workload_its_unit_or_its_metrics():
    named = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = str(file.relative_to(PACKAGE))
        if not path.startswith(ELSEWHERE):
            named[path] = [name for name in names_in(file.read_text(encoding="utf-8")) if NAMES.search(name)]
    assert len(named) > 300
    assert {path: names for path, names in named.items() if names} == {}


@pytest.mark.parametrize(
    "code", ["top1 = 0.5", 'unit = "images"', "key.image_size", "run(top5=1)", "def f(images): ..."]
)
def test_such_a_line_would_be_seen(code):
    assert any(NAMES.search(name) for name in names_in(code))
