"""Who may import whom, and what is imported only when it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "trainmark"
SHARED = {"errors", "__init__"}
# Each room, and the rooms below it that it may look into.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "__init__": {"store"},
    "__main__": {"cli"},
    "probe": set(),
    "events": set(),
    "workloads": {"probe"},
    "data": set(),
    "suite": {"yaml_source"},
    "environments": set(),
    "launch": {"events", "yaml_source"},
    "doctor": {"launch"},
    "forecast": {"ledger", "measure"},
    "readers": {"events"},
    "system": {"events"},
    "measure": {"events"},
    "store": {"events", "measure"},
    "yaml_source": set(),
    "ledger": {"measure", "yaml_source"},
    "report": {"events", "measure", "store", "ledger"},
    "export": {"events", "measure", "store", "report"},
    "protocols": {"events", "measure"},
    "audit": {"readers", "protocols", "measure", "ledger", "report", "system"},
    "conform": {"environments", "workloads"},
    "runner": {
        "conform",
        "doctor",
        "environments",
        "events",
        "suite",
        "launch",
        "readers",
        "system",
        "measure",
        "store",
        "workloads",
    },
    "cli": {
        "conform",
        "data",
        "doctor",
        "environments",
        "events",
        "suite",
        "launch",
        "readers",
        "system",
        "measure",
        "store",
        "report",
        "ledger",
        "runner",
        "export",
        "protocols",
        "audit",
        "forecast",
    },
}
OF_WORKLOADS = (
    "trainmark.workloads.resnet50.fused",
    "trainmark.workloads.resnet50.shared",
    "trainmark.workloads.resnet50.models",
    "trainmark.workloads.images",
    "trainmark.workloads.fabric",
)
# Run by another Python, which has what it imports.
ELSEWHERE = "trainmark.launch.ray_bridge"
LATE = ("duckdb", "pandas", "torch", "plotly")
CORE = ("cli", "suite", "store", "measure", "runner", "launch", "readers", "system", "events")


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    """`trainmark.suite.load` is in `suite`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports by a relative name"
            if node.module == "trainmark":
                yield from (f"trainmark.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)


def ours(file: Path) -> set[str]:
    found = {name for name in imports(file) if name.partition(".")[0] == "trainmark"}
    return {room(name) for name in found if not room(name).startswith("__version")}


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_room_is_on_the_plan():
    assert {room(dotted(file)) for file in files()} == set(MAY_IMPORT)


@pytest.mark.parametrize("file", files(), ids=dotted)
def test_a_file_looks_only_into_its_own_room_and_those_below(file):
    here = room(dotted(file))
    assert ours(file) <= MAY_IMPORT[here] | SHARED | {here}


def test_the_plan_itself_has_no_way_back_up():
    def below(name: str) -> set[str]:
        return MAY_IMPORT[name].union(*(below(other) for other in MAY_IMPORT[name]))

    assert all(name not in below(name) for name in MAY_IMPORT)


def test_no_framework_is_imported_outside_the_workloads():
    frameworks = {"torch", "tensorflow", "jax", "paddle", "mindspore", "oneflow", "mxnet"}
    guilty = [
        dotted(file)
        for file in files()
        if room(dotted(file)) != "workloads"
        and frameworks & {name.partition(".")[0] for name in imports(file)}
    ]
    assert guilty == []


def test_a_workload_knows_of_ours_only_the_probe_and_what_workloads_share():
    for file in files():
        if room(dotted(file)) == "workloads":
            for name in imports(file):
                if name.startswith("trainmark.") and name != "trainmark.probe":
                    assert name.startswith(OF_WORKLOADS)


def test_the_probe_and_the_agent_need_only_the_standard_library():
    for file in (PACKAGE / "probe.py", PACKAGE / "__init__.py", *(PACKAGE / "launch" / "agent").glob("*.py")):
        outside = {name.partition(".")[0] for name in imports(file)} - sys.stdlib_module_names
        assert outside <= (set() if file.name == "probe.py" else {"trainmark"})


def test_the_core_starts_without_what_only_some_commands_need():
    modules = [dotted(file) for file in files() if room(dotted(file)) in CORE]
    modules.remove(ELSEWHERE)
    assert len(modules) > 40
    python(
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({LATE!r}))\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
    )


@pytest.mark.parametrize("library", ["numpy", "rich", "yaml", "psutil", "jinja2", "pynvml", *LATE])
def test_the_command_line_starts_without(library):
    loaded = python("import sys, trainmark.cli.main; print(*sys.modules)").split()
    assert "trainmark.cli.main" in loaded
    assert library not in loaded


@pytest.mark.parametrize(
    ("library", "call", "sentence"),
    [
        ("pandas", "trainmark.load()", "a data frame needs pandas; pip install pandas."),
        ("duckdb", "query(Path('.'), 'SELECT 1')", "the index needs DuckDB; pip install duckdb."),
    ],
)
def test_what_is_not_installed_is_asked_for_by_the_name_of_its_extra(library, call, sentence):
    said = python(
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pathlib import Path\nimport trainmark\nfrom trainmark.store.index import query\n"
        f"try: {call}\nexcept ValueError as error: print(error)\n"
    )
    assert said.strip() == sentence
