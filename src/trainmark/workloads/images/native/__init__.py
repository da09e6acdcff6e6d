"""Our own decoder in C over libjpeg-turbo, through ctypes: compiled on first use, never at import.

It is built against this machine's libjpeg-turbo, once for each source and processor.
`TRAINMARK_JPEG_LIBRARY` names one that was built elsewhere (`python -m trainmark.workloads.images.native
OUT.so` makes one that needs no libjpeg on its machine).
"""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import threading

import numpy as np

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


def cached_library():
    """The library for this source and this processor, built now where it is not there yet."""
    path = os.path.join(_cache_folder(), f"jpeg-{_source_digest()}.so")
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


def _cache_folder():
    return os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "trainmark"
    )


def _source_digest():
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


WHY_BYTES = 256  # as in jpeg.h
# One image of a batch, as in batch.c: the address of its path or 0, else the descriptor of its shard.
RECORD = np.dtype([("path", "u8"), ("file", "i8"), ("offset", "u8"), ("size", "u8"), ("index", "i8")])

_guard = threading.Lock()
_loaded = None


class DecodeFailed(Exception):  # noqa: N818
    """libjpeg's own words."""


class _Window(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("left", "top", "width", "height")] + [
        (name, ctypes.c_int) for name in ("flip", "inside")
    ]


class JpegLibrary:
    """The functions of jpeg.c and batch.c; ctypes lets other threads run meanwhile."""

    def __init__(self, path):
        self.path = path
        library = ctypes.CDLL(path)
        bytes_, count, text = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p
        self._size = library.trainmark_jpeg_size
        self._size.argtypes = [bytes_, count, ctypes.POINTER(ctypes.c_int), text]
        self._batch, self._window = library.trainmark_jpeg_batch, library.trainmark_jpeg_window
        whole, share, key = ctypes.c_int, ctypes.c_double, ctypes.c_uint64
        self._batch.argtypes = [ctypes.c_void_p, *[whole] * 3, share, key, whole, *[ctypes.c_void_p] * 2]
        self._window.argtypes = [*[whole] * 4, share, key, key, ctypes.POINTER(_Window)]
        self._batch.restype = self._window.restype = None
        self._decode = library.trainmark_jpeg_decode
        self._decode.argtypes = [bytes_, count, ctypes.POINTER(_Window), ctypes.c_int, ctypes.c_void_p, text]

    def size(self, data):
        size, why = (ctypes.c_int * 2)(), ctypes.create_string_buffer(WHY_BYTES)
        if self._size(data, len(data), size, why):
            raise DecodeFailed(why.value.decode(errors="replace"))
        return size[0], size[1]

    def decode(self, data, window, out):
        """`out` is uint8 (size, size, 3), in one piece."""
        why = ctypes.create_string_buffer(WHY_BYTES)
        if self._decode(data, len(data), ctypes.byref(_Window(*window)), out.shape[0], out.ctypes.data, why):
            raise DecodeFailed(why.value.decode(errors="replace"))

    def batch(self, records, training, least, key, threads, out):
        """Fills `out`, uint8 (images, size, size, 3); which of its places it could, as an array."""
        made = np.empty(len(records), np.uint8)
        size = out.shape[1]
        place, done = out.ctypes.data, made.ctypes.data
        self._batch(records.ctypes.data, len(records), size, training, least, key, threads, place, done)
        return made

    def window(self, width, height, training, size, least, key, index):
        """What `augment` would choose; for the test that it does."""
        window = _Window()
        self._window(width, height, training, size, least, key, index, ctypes.byref(window))
        return tuple(getattr(window, name) for name, _ in _Window._fields_)


def load():
    """The library of this machine; Unbuilt with the reason, which is the same however often one asks."""
    global _loaded
    with _guard:
        if _loaded is None:
            _loaded = _load()
    if isinstance(_loaded, Unbuilt):
        raise _loaded
    return _loaded


def _load():
    named = os.environ.get("TRAINMARK_JPEG_LIBRARY")
    try:
        return JpegLibrary(named or cached_library())
    except Unbuilt as error:
        return error
    except (OSError, AttributeError) as error:
        return Unbuilt(f"the library cannot be loaded: {error}")
