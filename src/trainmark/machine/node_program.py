"""Modules of ours as one text that any Python on any node can run."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IMPORT = re.compile(r"^from trainmark\.(\S+) import ", re.MULTILINE)
LOADER = """
import sys, types
if sys.version_info < {oldest!r}:
    sys.exit("its Python is " + sys.version.split()[0] + "; name one of {wanted} or later in the inventory")
for name, source in {sources!a}:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""


def program(entry: str, oldest: tuple[int, int] = (3, 8)) -> str:
    """Return the text by which any Python from `oldest` on runs `main` of one of our modules."""
    sources = [(f"trainmark.{name}", source) for name, source in module_sources(entry).items()]
    return LOADER.format(oldest=oldest, wanted="{}.{}".format(*oldest), sources=sources)


def module_sources(entry: str) -> dict[str, str]:
    """Return the source of a module and of all of ours that it imports, each after those that it needs."""
    sources: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in sources:
            source = (PACKAGE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
            for imported in IMPORT.findall(source):
                add(imported)
            sources[name] = source

    add(entry)
    return sources
