"""Archives that are damaged, lie or explode, between two good logs, through the whole path of reading."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import lzma
import random
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from harness import Case, fuzz

from trainmark.logs.read import read_logs
from trainmark.pages.logs import logs_page
from trainmark.view import terminal

LINE = "train: epoch 0, iter {n}, loss: 6.5, top_1: 0.0, top_k: 0.1, samples/s: 288.088 {t:.3f}\n"
GOOD = "".join(LINE.format(n=20 * n, t=1.6e9 + 4 * n) for n in range(1, 40)).encode()
PACKERS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress, bytes)
NAMES = (
    "bad.log",
    "tr\xe8s.log",
    "../up.log",
    "/root.log",
    "a\x1b[31m.log",
    "n" * 300,
    "\udcff.log",
    "b/",
    "",
)
TAR_TYPES = b"0\x0071234567SLKDMNVxgXA\xff"
Packed = tuple[bytes, set[str]]


def make(rng: random.Random, number: int) -> Case:
    maker = rng.choice((zip_archive, tar_archive, tar_archive, zip_archive, stream, nested, random_damage))
    data, good = maker(rng)
    return Case(f"{maker.__name__}, {len(data)} bytes", lambda: check(data, good))


def check(data: bytes, good: set[str]) -> str | None:
    """The logs beside the archive are always read; so are the members that nothing happened to."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("first.log", "x", "last.log")]
        for path, content in zip(paths, (GOOD, data, GOOD), strict=True):
            path.write_bytes(content)
        reading = read_logs([str(path) for path in paths])
        terminal.render(logs_page(reading))
    for refusal in reading.refusals:
        if not refusal.sentence.endswith(".") or "\n" in refusal.sentence:
            return f"not one sentence: {refusal.sentence!r}"
    read = {log.name for log in reading.logs}
    wanted = {str(paths[0]), str(paths[2]), *(f"{paths[1]}!{name}" for name in good)}
    missing = sorted(wanted - read)
    sentences = [refusal.sentence for refusal in reading.refusals]
    return f"lost {missing[:3]}; said {sentences[:3]}" if missing else None


def zip_archive(rng: random.Random) -> Packed:
    """Good members around one whose local and central headers are changed."""
    names = [f"{n}.log" for n in range(rng.randint(1, 4))]
    bad = rng.choice(("bad.log", "bad.log", *NAMES[1:6]))
    at = rng.randint(0, len(names))
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name in (*names[:at], bad, *names[at:]):
            content = GOOD if name != bad else rng.choice((GOOD, b"", b"x" * 5000, _zeros(rng)))
            archive.writestr(zipfile.ZipInfo(name.encode("utf-8", "replace").decode()), content, method)
        offset, directory = archive.getinfo(archive.namelist()[at]).header_offset, archive.start_dir
    data = bytearray(file.getvalue())
    for _ in range(rng.randint(0, 3)):
        field = rng.choice((4, 6, 8, 14, 18, 22, 26, 28))
        data[offset + field : offset + field + 2] = _odd_number(rng)
    central, entry = directory, 0
    while entry < at:
        central += 46 + sum(struct.unpack_from("<HHH", data, central + 28))
        entry += 1
    # Not the lengths at 28 to 33: what stands behind them in the directory is then lost indeed.
    for _ in range(rng.randint(0, 3)):
        field = rng.choice((4, 6, 8, 10, 16, 20, 24, 34, 36, 38, 42))
        data[central + field : central + field + 2] = _odd_number(rng)
    return bytes(data), set(names)


def tar_archive(rng: random.Random) -> Packed:
    """Good members around one with an odd header; what a lying size covers is not expected."""
    before = [f"{n}.log" for n in range(rng.randint(0, 2))]
    behind = [f"{n + 5}.log" for n in range(rng.randint(0, 2))]
    bad, swallows = _odd_member(rng)
    data = b"".join(_member(name) for name in before) + bad + b"".join(_member(name) for name in behind)
    good = set(before) if swallows else {*before, *behind}
    if not before:  # what an archive is, is told by its first block
        data, good = _member("first.log") + data, good | {"first.log"}
    return rng.choice(PACKERS)(data + b"\0" * 1024), good


def _odd_member(rng: random.Random) -> tuple[bytes, bool]:
    info = tarfile.TarInfo(rng.choice(NAMES[:-1]))
    content = rng.choice((b"", GOOD, b"x" * 513))
    info.size = len(content)
    kind = rng.randrange(6)
    if kind == 0:  # a size that is not there
        info.size = rng.choice((1 << 20, 1 << 33, 1 << 40, 1 << 62))
        return info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape") + content, True
    if kind == 1:  # odd PAX records
        keys = (
            "size",
            "path",
            "GNU.sparse.size",
            "GNU.sparse.major",
            "GNU.sparse.map",
            "mtime",
            "hdrcharset",
        )
        # Some of these make the size another one, and with it where the next member begins.
        info.pax_headers = {rng.choice(keys): rng.choice(("1", "x", "-1", "9" * 30, "", "1,2,3", "\0"))}
        padding = b"\0" * (-len(content) % 512)
        return info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape") + content + padding, True
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape"))[-512:]
    if kind == 2:  # another type, with the right checksum
        header[156] = rng.choice(TAR_TYPES)
        _sign(header)
    elif kind == 3:  # a sparse one with a map
        header[156:157] = b"S"
        header[386:495] = bytes(rng.choice(b"01234567\0") for _ in range(109))
        header[482] = rng.choice((0, 0, 1))
        _sign(header)
    elif kind == 4:  # a damaged one
        header[rng.randrange(150)] ^= 1 << rng.randrange(8)
    else:  # a number of any form
        at = rng.choice((100, 108, 116, 124, 136))
        header[at : at + 8] = rng.choice(
            (b"\xff" * 8, b"\x80" + b"\xff" * 7, b"zzzzzzz\0", b"\0" * 8, b"-1     \0")
        )
        _sign(header)
    # A damaged header hides where its content ends, but the next header is found all the same.
    return bytes(header) + content + b"\0" * (-len(content) % 512), kind not in (4,)


def stream(rng: random.Random) -> Packed:
    """One packed stream that is whole, cut, flipped, doubled, followed by something or far too large."""
    data = rng.choice(PACKERS[:3])(rng.choice((GOOD, GOOD * 50, b"", _zeros(rng))))
    kind = rng.randrange(6)
    if kind == 0:
        data = data[: rng.randrange(len(data))]
    elif kind == 1:
        data = _flipped(rng, data)
    elif kind == 2:
        data += rng.choice(PACKERS[:3])(GOOD)
    elif kind == 3:
        data += bytes(rng.randrange(256) for _ in range(rng.randrange(40)))
    elif kind == 4:
        data = _bomb() if rng.random() < 0.1 else data
    else:  # a gzip header with a name that does not end
        data = b"\x1f\x8b\x08\x08" + b"\0" * 6 + b"n" * rng.choice((10, 1 << 20))
    return data, set()


def nested(rng: random.Random) -> Packed:
    """An odd archive as the first member of another, before a good log."""
    inner, good = rng.choice((zip_archive, tar_archive, stream))(rng)
    # The limit is one for the whole: where the first member goes beyond it, nothing is read behind that.
    names = set() if inner is _bomb() else {f"in!{name}" for name in good} | {"good.log"}
    if rng.random() < 0.5:
        return _member("in", inner) + _member("good.log"), names
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in", inner)
        archive.writestr("good.log", GOOD)
    return file.getvalue(), names


def random_damage(rng: random.Random) -> Packed:
    """Any of the others, cut or with bits flipped anywhere; nothing inside is expected."""
    data, _ = rng.choice((zip_archive, tar_archive, nested))(rng)
    return (data[: rng.randrange(len(data))] if rng.random() < 0.3 else _flipped(rng, data)), set()


def _member(name: str, content: bytes = GOOD) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    return info.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def _sign(header: bytearray) -> None:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)


def _flipped(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _odd_number(rng: random.Random) -> bytes:
    return struct.pack(
        "<H", rng.choice((0, 1, 8, 9, 12, 14, 93, 99, 255, 0x800, 0xFFFF, rng.randrange(65536)))
    )


def _zeros(rng: random.Random) -> bytes:
    return rng.choice((b"\0", b"\n", b"x")) * rng.choice((1 << 10, 1 << 20))


@functools.cache
def _bomb() -> bytes:
    """About 600 MB in half a megabyte of gzip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = GOOD + b"\n" * (1 << 20)
    return b"".join(packer.compress(block) for _ in range(600)) + packer.flush()


if __name__ == "__main__":
    check(
        GOOD, set()
    )  # what is imported late is imported once, before the inputs have processes of their own
    fuzz("archives", 5000, make)
