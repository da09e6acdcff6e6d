"""The commands on the pages: those marked as runnable run, the others at least exist."""

import ast
import re
import shlex
import sys
from importlib.util import find_spec

import click
import pytest
from doc_pages import BLOCK, PAGES, ROOT, blocks, commands

from trainmark.cli.main import trainmark

RUNNABLE = [page for page in PAGES if blocks(page.read_text(encoding="utf-8"), "sh", "python")]
EVERY_COMMAND = sorted({line for page in PAGES for line in commands(page.read_text(encoding="utf-8"))})
OURS = [line for line in EVERY_COMMAND if line.startswith("trainmark ")]
MADE = [line for line in EVERY_COMMAND if line.startswith("make ")]
INSTALLED = [line for line in EVERY_COMMAND if line.startswith("pip install .")]
# Of a package that the tests do not need.
OF_LIBRARIES = [block for page in PAGES for block in blocks(page.read_text(encoding="utf-8"), "py")]


def imported(block):
    """The packages that a block imports."""
    nodes = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] for node in nodes
    ]
    return sorted({name.partition(".")[0] for group in names for name in group})


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_the_runnable_blocks_of_a_page_run_in_order(page, hasty_reader):
    for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind in ("sh", "python"):
            interpreter = ["bash", "-euo", "pipefail"] if kind == "sh" else [sys.executable]
            ran = hasty_reader.types(*interpreter, "-c", block)
            assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("block", OF_LIBRARIES, ids=lambda block: "-".join(imported(block)))
def test_a_block_for_another_library_runs_where_that_is_installed(block, reader):
    missing = [name for name in imported(block) if name != "trainmark" and find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed")
    ran = reader.types(sys.executable, "-c", block)
    assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("block", OF_LIBRARIES, ids=lambda block: "-".join(imported(block)))
def test_what_a_block_for_another_library_takes_of_ours_is_there(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("trainmark.callbacks."):
            source = (ROOT / "src" / (node.module.replace(".", "/") + ".py")).read_text(encoding="utf-8")
            defined = {each.name for each in ast.parse(source).body if hasattr(each, "name")}
            assert {alias.name for alias in node.names} <= defined


@pytest.mark.parametrize("line", OURS)
def test_every_trainmark_command_on_the_pages_is_understood(line):
    words = shlex.split(line.partition(" > ")[0].partition(" || ")[0])[1:]
    group = trainmark
    context = click.Context(group, info_name="trainmark", **trainmark.context_settings)
    while words and isinstance(group, click.Group) and not words[0].startswith("-"):
        name, group, words = group.resolve_command(context, words)
        context = click.Context(group, parent=context, info_name=name)
    if words:  # a command's bare name in a sentence leaves its arguments out
        group.make_context(context.info_name, words, parent=context.parent)


@pytest.mark.parametrize("line", MADE)
def test_every_make_target_on_the_pages_exists(line):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert line.split()[1] in targets


@pytest.mark.parametrize("line", INSTALLED)
def test_every_extra_on_the_pages_exists(line):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    optional = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = re.findall(r"^(\w+) =", optional, re.MULTILINE)
    asked = re.fullmatch(r"pip install \.(?:\[([\w,]+)\])?", line)
    assert asked and set((asked[1] or extras[0]).split(",")) <= set(extras)


def test_a_page_names_commands_of_each_kind():
    assert OURS and MADE and INSTALLED and RUNNABLE
