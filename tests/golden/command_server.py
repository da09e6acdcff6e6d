"""Runs command lines as `python -m trainmark` does, each in a process that is forked with its imports done.

Reads JSON lines, `{"words": [...], "out": PATH, "err": PATH}`, and answers with exit codes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import runpy
import sys
from typing import Any

SETTING = re.compile(r"[A-Z_]+=.*")
PRELOADED = ("trainmark", "numpy", "rich", "jinja2", "yaml", "click")


def run(request: dict[str, Any]) -> int:
    """Run one command line in this process and return its exit code."""
    for descriptor, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    words = request["words"]
    while SETTING.fullmatch(words[0]):
        name, _, os.environ[name] = words.pop(0).partition("=")
    sys.argv = ["trainmark", *words]
    try:
        runpy.run_module("trainmark", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        sys.stdout.flush()
        sys.stderr.flush()
        return left.code if isinstance(left.code, int) else 1
    return 0


def fork(request: dict[str, Any]) -> int:
    reading, writing = os.pipe()
    gc.freeze()
    child = os.fork()
    if child == 0:
        code = run(request)
        imported = [name for name in sys.modules if name.split(".")[0] in PRELOADED]
        os.write(writing, json.dumps(imported).encode())
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        names = json.loads(pipe.read() or "[]")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for name in names:
        if name not in sys.modules and not name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    return code


if __name__ == "__main__":
    for line in sys.stdin:
        print(fork(json.loads(line)), flush=True)
