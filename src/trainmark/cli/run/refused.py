"""What cannot be the program that was meant: refused in a sentence before a trial fails for it."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path

from trainmark.errors import UserError

PYTHON = re.compile(r"(?:.*/)?python[\d.]*")
# Those of Python that take no value: what follows them is the script.
PYTHON_FLAGS = re.compile(r"-[bBdEiIOPqsSuvx]+")
RANK_STARTERS = ("torchrun", "accelerate", "deepspeed")
PROGRAMS = ("python", "python3", *RANK_STARTERS, "mpirun", "bash")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def no_program(word: str) -> UserError:
    """Say why this cannot be started, and what can."""
    path = Path(word)
    if path.suffix == ".ipynb":
        return _notebook(word)
    if path.is_file():
        starter = "python" if path.suffix == ".py" else "bash"
        return UserError(f"'{word}' is a file that does not start by this name; write `{starter} {word}`.")
    near = _near(word, PROGRAMS, "; a command line starts with a program.")
    return UserError(f"there is no program '{word}' here{near}")


def no_script(script: str) -> UserError:
    path = Path(script)
    beside = sorted(each.name for each in path.parent.glob("*.py"))
    return UserError(f"there is no script {script}{_near(path.name, beside, '.')}")


def require_script(words: Sequence[str]) -> None:
    """Refuse a Python script that is not there and a notebook, which Python takes for an expression."""
    script = _script_of(words)
    if script is None:
        return
    if script.endswith(".ipynb"):
        raise _notebook(script)
    if not Path(script).exists():
        raise no_script(script)


def refuse_as_suite(name: str) -> None:
    """Refuse a notebook and a shell script where a suite would stand."""
    path = Path(name)
    if path.suffix == ".ipynb":
        raise _notebook(name)
    if path.is_file() and (path.suffix in (".sh", ".bash") or _has_shebang(path)):
        raise UserError(
            f"{name} is no suite but a program; did you mean `trainmark run -- {_start_of(path)}`?"
        )


def _script_of(words: Sequence[str]) -> str | None:
    """The script of a line that starts with Python or a starter of ranks; None where that is not certain."""
    line = list(words)
    if line[0] == "env":
        line = list(itertools.dropwhile(ASSIGNMENT.match, line[1:]))
    first, rest = (line[0], line[1:]) if line else ("", [])
    if Path(first).name in RANK_STARTERS and not {"-m", "--module"} & set(rest):
        return next((word for word in rest if word.endswith(".py")), None)
    if not PYTHON.fullmatch(first):
        return None
    script = next(itertools.dropwhile(PYTHON_FLAGS.fullmatch, rest), "-")
    return None if script.startswith("-") else script


def _start_of(path: Path) -> str:
    at_once = str(path) if "/" in str(path) else f"./{path}"
    return at_once if os.access(path, os.X_OK) else f"bash {path}"


def _has_shebang(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _near(word: str, known: Sequence[str], otherwise: str) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else otherwise


def _notebook(name: str) -> UserError:
    return UserError(
        f"{name} is a notebook, which no program runs; make a script of it first: "
        f"jupyter nbconvert --to script {name}."
    )
