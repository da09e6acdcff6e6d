"""Name the test files that a change can reach, by who imports whom.

`python -m tools.affected [BASE]` looks at what differs from BASE (HEAD: what is not committed) and prints one
file a line, the nearest to the change first: `python -m pytest $(python -m tools.affected main)`.
A test file reaches what it, its helpers and its conftest import, and the commands that it calls through the
fixture `trainmark`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from trainmark.cli.main import GROUPS

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"
COMMANDS = {name: f"trainmark.{late.module}" for group in GROUPS.values() for name, late in group.items()}
# A module that is named and not imported: "trainmark.audit.protocols", "explain.command".
NAMED = re.compile(r"(?:trainmark\.)?[a-z_0-9]+(?:\.[a-z_0-9]+)+")


def main(words: list[str]) -> None:
    base = words[0] if words else "HEAD"
    changed = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    for file in affected([ROOT / name for name in changed]):
        print(file.relative_to(ROOT))


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def affected(changed: Iterable[Path]) -> list[Path]:
    """Return the test files that reach a changed file, those with the fewest imports between first."""
    importers = _turned(import_graph())
    distance = {file: 0 for path in changed for file in _beside(path)}
    waiting = deque(distance)
    while waiting:
        file = waiting.popleft()
        for importer in importers.get(file, ()):
            if importer not in distance:
                distance[importer] = distance[file] + 1
                waiting.append(importer)
    tests = [file for file in distance if file.name.startswith("test_") and file.exists()]
    return sorted(tests, key=lambda file: (distance[file], file))


def _beside(path: Path) -> Iterator[Path]:
    """A Python file is itself; any other file, and one that is gone, all of its folder."""
    if path.suffix == ".py" and path.exists():
        yield path
    elif path.is_relative_to(SOURCE) or path.is_relative_to(TESTS):
        yield from path.parent.glob("*.py")


@cache
def import_graph() -> dict[Path, set[Path]]:
    """Return what each file of the package and of the tests imports or names."""
    modules = {_dotted(file): file for file in SOURCE.rglob("*.py")}
    helpers = {file.stem: file for file in TESTS.rglob("*.py") if not file.name.startswith("test_")}
    graph = {file: set(_named_in(file, modules)) for file in modules.values()}
    for file in TESTS.rglob("*.py"):
        fixtures = {folder / "conftest.py" for folder in file.parents if folder.is_relative_to(TESTS)} - {
            file
        }
        graph[file] = {*_named_in(file, {**helpers, **modules}), *fixtures}
    return graph


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _named_in(file: Path, modules: Mapping[str, Path]) -> Iterator[Path]:
    """What a file imports, names in a text, or calls as a command: `trainmark("report", …)`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMED.fullmatch(node.value):
            names = [node.value, f"trainmark.{node.value}"]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "trainmark":
            first = node.args[0] if node.args else None
            names = (
                [COMMANDS[first.value]] if isinstance(first, ast.Constant) and first.value in COMMANDS else []
            )
        else:
            continue
        yield from (modules[name] for name in names if name in modules and modules[name] != file)


def _turned(graph: Mapping[Path, set[Path]]) -> dict[Path, set[Path]]:
    importers: dict[Path, set[Path]] = {}
    for file, imported in graph.items():
        # The table of commands names them all; whoever starts the command line is not reached by each.
        for each in imported if file != SOURCE / "trainmark" / "cli" / "main.py" else ():
            importers.setdefault(each, set()).add(file)
    return importers


if __name__ == "__main__":
    main(sys.argv[1:])
