"""Who may import whom, and what is imported only when it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "trainmark"
# What every room may use; docs/architecture.md has a table of the rooms, which tests/docs holds to the code.
SHARED = {"base", "metric"}
OF_WORKLOADS = (
    "trainmark.base.errors",
    "trainmark.metric",
    "trainmark.inside.profiler",
    "trainmark.workloads.common",
    "trainmark.workloads.declaration",
    "trainmark.workloads.registry",
    "trainmark.workloads.resnet50.fused",
    "trainmark.workloads.resnet50.shared",
    "trainmark.workloads.resnet50.pytorch",
    "trainmark.workloads.images",
    "trainmark.workloads.fabric",
    "trainmark.workloads.tokens",
    "trainmark.workloads.transformers",
    "trainmark.workloads.gpt2.shared",
    "trainmark.workloads.bert.shared",
    "trainmark.workloads.llama.shared",
    "trainmark.workloads.tokens",
)
OF_COMMON = ("trainmark.probe", "trainmark.inside.profiler", "trainmark.workloads.common")
# Run by another Python, which has what it imports.
ELSEWHERE = "trainmark.launch.carriers.ray_bridge"
LATE = ("crc32c", "duckdb", "pandas", "PIL", "torch")
CORE = ("cli", "suite", "store", "measure", "runner", "launch", "logs", "audit", "machine", "events")
# From the bottom: a room imports only those before it.
SPINE = (
    "base",
    "view",
    "events",
    "inside",
    "measure",
    "callbacks",
    "workloads",
    "machine",
    "suite",
    "launch",
    "logs",
    "store",
    "runner",
    "pages",
    "api",
    "cli",
)
# Products of their own on the spine, which no room and no other plugin imports.
PLUGINS = ("audit", "data", "explain", "forecast", "server")
ROOMS = (*SPINE, *PLUGINS)
# Rooms whose own inner rooms are looked at too.
INNER = ("workloads/common", "workloads/resnet50/fused")


@cache
def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> str:
    """`trainmark.suite.load` is in `suite`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@cache
def imports(file: Path) -> tuple[str, ...]:
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[str]:
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
    names = {name for name in imports(file) if name.partition(".")[0] == "trainmark"}
    return {room(name) for name in names if not room(name).startswith("__version")}


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_every_room_may_use_looks_into_no_room():
    for file in (*(PACKAGE / "base").glob("*.py"), PACKAGE / "metric.py"):
        assert ours(file) <= SHARED
    assert ours(PACKAGE / "__init__.py") <= SHARED | {"api", "explain", "store"}


def modules_imported(file: Path) -> Iterator[tuple[str, ...]]:
    """The parts of each of our modules that a file imports; `from trainmark.a import b` may mean a.b."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")[1:]
            while parts and not is_module(parts):
                parts.pop()
            if name.startswith("trainmark.") and parts:
                yield tuple(parts)


def is_module(parts: Sequence[str]) -> bool:
    place = PACKAGE.joinpath(*parts)
    return place.is_dir() or place.with_suffix(".py").is_file()


def folders() -> list[Path]:
    return sorted({file.parent for file in files()})


def test_every_room_has_a_place_in_the_order():
    assert {folder.name for folder in folders() if folder.parent == PACKAGE} == set(ROOMS)


def test_a_room_imports_only_rooms_below_it_and_no_plugin():
    for file in files():
        if room(dotted(file)) in ROOMS:
            own = room(dotted(file))
            above = {*SPINE[SPINE.index(own) + 1 :], *PLUGINS} if own in SPINE else {*PLUGINS} - {own}
            assert not {parts[0] for parts in modules_imported(file)} & above, dotted(file)


@pytest.mark.parametrize("folder", [*ROOMS, *INNER])
def test_inner_rooms_import_each_other_in_one_direction(folder):
    place, depth = PACKAGE / folder, len(Path(folder).parts)
    graph: dict[str, set[str]] = {}
    for file in place.rglob("*.py"):
        own = file.relative_to(place).parts[0].removesuffix(".py")
        imported = {parts for parts in modules_imported(file) if parts[:depth] == Path(folder).parts}
        graph.setdefault(own, set()).update(
            parts[depth] for parts in imported if len(parts) > depth and parts[depth] != own
        )
    assert list(TopologicalSorter(graph).static_order())


def test_no_framework_is_imported_outside_the_workloads_and_the_callbacks():
    frameworks = {"torch", "tensorflow", "jax", "paddle", "mindspore", "oneflow", "mxnet"}
    guilty = [
        dotted(file)
        for file in files()
        if room(dotted(file)) not in ("callbacks", "workloads")
        and frameworks & {name.partition(".")[0] for name in imports(file)}
    ]
    assert guilty == []


def test_a_workload_knows_of_ours_only_the_probe_and_what_workloads_share():
    for file in files():
        if room(dotted(file)) == "workloads":
            for name in imports(file):
                if name.startswith("trainmark.") and name != "trainmark.probe":
                    assert name.startswith(OF_WORKLOADS)


def test_what_all_families_share_knows_no_family():
    for file in (PACKAGE / "workloads" / "common").rglob("*.py"):
        ours = {name for name in imports(file) if name.startswith("trainmark")}
        assert all(name.startswith(OF_COMMON) for name in ours), file


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


def test_the_command_line_starts_without_what_is_slow_to_import():
    loaded = python("import sys, trainmark.cli.main; print(*sys.modules)").split()
    assert "trainmark.cli.main" in loaded
    assert not set(loaded) & {"numpy", "rich", "yaml", "psutil", "jinja2", "pynvml", *LATE}


@pytest.mark.parametrize(
    ("library", "call", "sentence"),
    [
        ("pandas", "trainmark.load()", "a data frame needs pandas; pip install pandas."),
        ("duckdb", "query(Path('.'), 'SELECT 1')", "the index needs DuckDB; pip install duckdb."),
        ("PIL", "_encoder()", "making pictures needs Pillow; pip install pillow."),
        ("crc32c", "masked_crc(b'')", "the checksums of TFRecord need crc32c; pip install crc32c."),
    ],
)
def test_what_is_not_installed_is_asked_for_by_the_name_of_its_package(library, call, sentence):
    output = python(
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pathlib import Path\nimport trainmark\nfrom trainmark.store.index import query\n"
        "from trainmark.data.command_make import _encoder\n"
        "from trainmark.base.wire import masked_crc\n"
        f"try: {call}\nexcept ValueError as error: print(error)\n"
    )
    assert output.strip() == sentence


def test_declarations_import_neither_numpy_nor_a_framework():
    program = "import sys; from trainmark.workloads import registry; registry.built_in(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "trainmark.workloads.gpt2.workload" in done.stdout.split()
    assert not {"numpy", "torch"} & set(done.stdout.split())
