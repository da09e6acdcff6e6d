"""Compiles our decoder against this machine's libjpeg-turbo, once for each source and processor."""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, name) for name in ("batch.c", "jpeg.c")]
HEADERS = [os.path.join(HERE, name) for name in ("jpeg.h", "resize.h", "window.h")]
FLAGS = (
    "-pthread",
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffp-contract=fast",
    "-w",
)
# The archive first: a library that carries its own libjpeg cannot be given another framework's.
STATIC = ("-Wl,--exclude-libs,ALL", "-Wl,-Bsymbolic", "-l:libjpeg.a")
SHARED = ("-ljpeg",)
COMPILE_SECONDS = 120


class Unbuilt(Exception):  # noqa: N818
    """Why there is no library; one sentence."""


def cached():
    """The library for this source and this processor, built now where it is not there yet."""
    path = os.path.join(_cache(), f"jpeg-{_digest()}.so")
    if not os.path.exists(path):
        build(path, ("-march=native",))
    return path


def build(path, machine=(), links=(STATIC, SHARED)):
    """Writes the library whole or not at all; the first way to link that works."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise Unbuilt("no C compiler (install gcc)")
    folder = os.path.dirname(os.path.abspath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            part = os.path.join(beside, "jpeg.so")
            output = ""
            for link in links:
                command = [*compiler.split(), *FLAGS, *machine, *SOURCES, "-o", part, *link, "-lm"]
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=COMPILE_SECONDS
                )
                if done.returncode == 0:
                    os.replace(part, path)
                    return
                output = done.stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError) as error:
        raise Unbuilt(f"it cannot be compiled: {error}") from error
    if "jpeglib.h: No such file" in output or "'jpeglib.h' file not found" in output:
        raise Unbuilt(
            "no headers of libjpeg-turbo (Debian: libjpeg62-turbo-dev, Red Hat: libjpeg-turbo-devel)"
        )
    raise Unbuilt("it cannot be compiled: " + _first_error(output))


def _cache():
    return os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "trainmark"
    )


def _digest():
    digest = hashlib.sha256(platform.machine().encode())
    for source in (*SOURCES, *HEADERS):
        with open(source, "rb") as file:
            digest.update(file.read())
    digest.update(" ".join((*FLAGS, *STATIC, *SHARED)).encode())
    digest.update(_processor())
    return digest.hexdigest()[:16]


def _processor():
    """What tells processors apart that `-march=native` would tell apart."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            lines = file.read().split(b"\n\n")[0].splitlines()
    except OSError:
        return platform.processor().encode()
    prefixes = (b"model name", b"flags", b"Features", b"CPU part", b"CPU implementer")
    return b"\n".join(line for line in lines if line.startswith(prefixes))


def _first_error(output):
    lines = (
        [line for line in output.splitlines() if "error" in line.lower()]
        or output.splitlines()
        or ["no reason"]
    )
    return lines[0]
