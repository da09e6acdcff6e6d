"""Every command with every hostile value for each of its options and arguments that take text or a path."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import itertools
import os
import pkgutil
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from harness import Case, fuzz

import trainmark as package
from trainmark.cli import main as entry

Words = tuple[str, ...]
DONE, INTERRUPTED = (0, 1, 2), 130
SPARSE_BYTES = 4 << 30
# What makes a command harmless, or lets it come as far as the value under test.
HARMLESS: dict[str, Words] = {
    "run": ("--dry-run",),
    "compare": ("--fail-below", "0.9"),
    "doctor": ("--timeout", "2"),
    "fabric": ("--run=no-such",),
    "data make": ("--classes", "1", "--images", "1", "--workers", "1"),
    "data imagenet": ("--workers", "1"),
    "data convert": ("--workers", "1"),
    "data verify": ("--workers", "1"),
    "data index": ("--workers", "1"),
    "data bench": ("--seconds", "0.1", "--rounds", "1"),
}
PLAIN = {"suite": "quick", "names": "no-such-framework", "to": "rec"}
TEXTS = {
    "empty text": "",
    "dash": "-",
    "escape": "\x1b[31mred\x1b]0;title\x07",
    "surrogate": "\udcff\udcfe",
    "direction": "a\u202eb\u2066c",
    "lines": "a\nb\r\nc",
    "long": "x" * 5000,
    "glob": "[*?",
    "assignment": "a=b=c",
    "yaml": "precision=!!bool maybe",
    "depth": "precision=" + "[" * 3000,
    "number": "9" * 5000,
    "up": "../../../../etc/passwd",
    "option": "--no-such-option",
    "nonexistent": "no/such/file.yaml",
}


@functools.cache
def scratch() -> Path:
    """Hostile files, made once: devices, pipes, folders, and content of every bad kind."""
    folder = Path(tempfile.mkdtemp(prefix="trainmark-fuzz-"))
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 64)
    (folder / "huge-line").write_bytes(b"x" * (8 << 20))
    (folder / "latin1").write_bytes("name: tr\xe8s\n".encode("latin-1"))
    (folder / "depth").write_bytes(b"[" * 3000)
    (folder / "escapes").write_bytes(b"name: \x1b[31mred\n\x1b]0;x\x07: \xc2\x9b\n")
    (folder / "json").write_bytes(b'{"a": ' * 3000)
    (folder / "secret").write_bytes(b"name: x\n")
    (folder / "secret").chmod(0)
    (folder / "\x1b[31mred").write_bytes(b"name: x\n")
    (folder / os.fsdecode(b"\xff\xfe")).write_bytes(b"name: x\n")
    with (folder / "sparse").open("wb") as file:
        file.truncate(SPARSE_BYTES)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(folder / "socket"))
    # Some readers go by the ending.
    names = ("fifo", "zero", "sparse", "binary", "loop")
    for name, ending in itertools.product(names, (".yaml", ".json", ".log")):
        (folder / f"{name}{ending}").symlink_to(folder / name)
    return folder


def hostile(kind: click.ParamType) -> dict[str, str]:
    """Every file for what takes a path, every text for what takes text, and some of the others for each."""
    files = {f"file {path.name!r}": str(path) for path in sorted(scratch().iterdir())}
    files |= {"bare device": "/dev/zero", "folder in proc": "/proc/self/fd"}
    if isinstance(kind, click.Path):
        return files | {
            label: TEXTS[label] for label in ("empty text", "escape", "surrogate", "lines", "long")
        }
    names = ("fifo", "zero", "sparse.log", "zero.yaml", "fifo.yaml", "sparse.json", "zero.json", "escapes")
    return TEXTS | {label: files[label] for label in (f"file {name!r}" for name in names)}


def commands(group: click.Command, path: Words = ()) -> Iterator[tuple[Words, click.Command]]:
    context = click.Context(group)
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, (*path, name))
    if not isinstance(group, click.Group) or group.invoke_without_command:
        yield path, group


@functools.cache
def lines() -> list[tuple[str, Words]]:
    """Every command line, with what is hostile in it."""
    command_lines = []
    for path, command in commands(entry.trainmark):
        for under_test in command.params:
            if not isinstance(under_test.type, click.Path | click.types.StringParamType):
                continue
            if path == ("frameworks", "install") and under_test.name != "names":
                continue
            for label, value in hostile(under_test.type).items():
                description = f"{' '.join(path)} {under_test.name}: {label}"
                command_lines.append((description, words(path, command, under_test, value)))
    # In an order of chance, so that the first hundred already touch every command.
    random.Random(0).shuffle(command_lines)
    return command_lines


def words(path: Words, command: click.Command, under_test: click.Parameter, value: str) -> Words:
    """The command line in which one parameter is hostile and what else it needs is plain."""
    harmless = HARMLESS.get(" ".join(path), ())
    given = [*path, *(word for word in harmless if word.split("=")[0] not in under_test.opts)]
    for parameter in command.params:
        is_argument = isinstance(parameter, click.Argument)
        if parameter is not under_test and not parameter.required and not is_argument:
            continue
        plain = PLAIN.get(parameter.name or "", "no-such")
        if isinstance(parameter.type, click.Choice):
            plain = str(next(iter(parameter.type.choices)))
        text = value if parameter is under_test else plain
        if parameter.opts[0] not in given:
            given += [text] if is_argument else [f"{parameter.opts[0]}={text}"]
    return tuple(given)


def make(rng: random.Random, number: int) -> Case:
    label, given = lines()[number % len(lines())]
    return Case(f"{label}\ntrainmark {' '.join(map(repr, given))[:1500]}", lambda: check(given))


def check(given: Words) -> str | None:
    """Run the command as the script does, in an empty folder, with no program on PATH."""
    here = tempfile.mkdtemp()
    os.chdir(here)
    os.environ.update(HOME=here, PATH="/nonexistent", XDG_CACHE_HOME=here, XDG_DATA_HOME=here)
    os.environ.pop("TRAINMARK_RUNS", None)
    outputs = [os.open(f"{here}.{n}", os.O_CREAT | os.O_RDWR) for n in (1, 2)]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, descriptor in zip(("stdout", "stderr"), outputs, strict=True):
        number = 1 if stream == "stdout" else 2
        os.dup2(descriptor, number)
        # As a terminal in a UTF-8 locale is: what it cannot take raises.
        errors = "strict" if number == 1 else "backslashreplace"
        setattr(sys, stream, io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), "utf-8", errors))
    sys.argv = ["trainmark", *given]
    code: object = 0
    try:
        entry.main()
    except SystemExit as left:
        code = left.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        contents = [Path(f"{here}.{n}").read_bytes() for n in (1, 2)]
        for n in (1, 2):
            Path(f"{here}.{n}").unlink()
        os.chdir("/")
        shutil.rmtree(here, ignore_errors=True)
    ends = b" ... ".join(contents)[-800:].decode("utf-8", "replace")
    if code not in (*DONE, None, INTERRUPTED):
        return f"exit code {code}: {ends!r}"
    if b"Traceback" in contents[1]:
        return f"a traceback: {ends}"
    if b"\x1b" in b"".join(contents):
        return f"a raw escape: {ends!r}"
    if code == DONE[2] and not contents[1].strip():
        return "exit code 2 without a sentence"
    return None


def import_all() -> None:
    """Import what commands import late, once and before the inputs have processes of their own."""
    for module in pkgutil.walk_packages(package.__path__, "trainmark."):
        if ".workloads" not in module.name and not module.name.endswith(("__main__", "ray_bridge")):
            importlib.import_module(module.name)


if __name__ == "__main__":
    import_all()
    try:
        fuzz("commands", len(lines()), make)
    finally:
        shutil.rmtree(scratch(), ignore_errors=True)
