"""Which class a validation image of ImageNet belongs to: one of several files tells, meta.mat among them."""

from __future__ import annotations

import csv
import io
import math
import re
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from trainmark.base.errors import UserError
from trainmark.base.files import read_input

HEADER = 128
MATRIX, COMPRESSED = 14, 15
STRUCT, CHAR = 2, 4
# Kinds of numbers, as `struct` names them; 16 to 18 are text in UTF-8, -16 and -32.
NUMBERS = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 9: "d", 12: "q", 13: "Q"}
TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32", 1: "latin-1", 2: "latin-1"}
# The file is 1 MB; one that unpacks to more than this is something else.
MOST = 1 << 28

Order = Literal["<", ">"]
Value = str | tuple[float, ...]


def structures(data: bytes) -> list[dict[str, Value]]:
    """The first array of structures in the file, an entry each; ValueError where there is none."""
    order: Order = "<" if data[126:128] == b"IM" else ">"
    for kind, content in _elements(data[HEADER:], order):
        if kind == MATRIX and (entries := _structures(content, order)) is not None:
            return entries
    raise ValueError("no array of structures in it")


def _structures(matrix: bytes, order: Order) -> list[dict[str, Value]] | None:
    parts = _elements(matrix, order)
    flags, dims, _name = (next(parts)[1] for _ in range(3))
    if struct.unpack(f"{order}I", flags[:4])[0] & 0xFF != STRUCT:
        return None
    count = math.prod(struct.unpack(f"{order}{len(dims) // 4}i", dims))
    width = struct.unpack(f"{order}i", next(parts)[1][:4])[0]
    text = next(parts)[1]
    fields = [text[at : at + width].split(b"\0")[0].decode() for at in range(0, len(text), max(1, width))]
    return [{field: _value(next(parts)[1], order) for field in fields} for _ in range(count)]


def _value(matrix: bytes, order: Order) -> Value:
    """Text, or numbers; what is neither (a structure in a structure) counts as none."""
    parts = _elements(matrix, order)
    if (first := next(parts, None)) is None:
        return ()
    what = struct.unpack(f"{order}I", first[1][:4])[0] & 0xFF
    next(parts), next(parts)
    if what == STRUCT or (content := next(parts, None)) is None:
        return ()
    kind, raw = content
    if what == CHAR:
        return (
            "".join(map(chr, _numbers(raw, "H", order))) if kind == 4 else raw.decode(TEXTS[kind], "replace")
        )
    return tuple(float(number) for number in _numbers(raw, NUMBERS.get(kind, ""), order))


def _numbers(raw: bytes, code: str, order: Order) -> tuple[int, ...]:
    return struct.unpack(f"{order}{len(raw) // struct.calcsize(code)}{code}", raw) if code else ()


def _elements(data: bytes, order: Order) -> Iterator[tuple[int, bytes]]:
    """Kind and content of one element after the other; those of up to four bytes have a shorter head."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack(f"{order}II", data[at : at + 8])
        if kind >> 16:
            yield kind & 0xFFFF, data[at + 4 : at + 4 + min(4, kind >> 16)]
            at += 8
            continue
        content = data[at + 8 : at + 8 + size]
        at += 8 + size
        if kind == COMPRESSED:
            yield from _elements(zlib.decompressobj().decompress(content, MOST), order)
        else:
            yield kind, content
            at += -size % 8


SYNSET = re.compile(r"n\d{8}")
NUMBERED = re.compile(r"(\d{8})(?:\.\w+)?$")
GROUND_TRUTH, META = "ILSVRC2012_validation_ground_truth.txt", "meta.mat"
KNOWN = "lines with a synset each (n01440764), ILSVRC2012_devkit_t12.tar.gz, or LOC_val_solution.csv"
GZIP, GZIP_WINDOW = b"\x1f\x8b", 16 + zlib.MAX_WBITS
# The devkit has 2.5 MB and unpacks to 10.
LARGEST_BYTES = 64 << 20


class Labels:
    """Synsets by the number of the image, which is how its name ends."""

    def __init__(self, synsets: Mapping[int, str]) -> None:
        self.synsets = dict(synsets)

    def of(self, name: str) -> str | None:
        match = NUMBERED.search(PurePosixPath(name).name)
        return self.synsets.get(int(match[1])) if match else None

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.synsets.values())))


def read_labels(path: Path) -> Labels:
    try:
        data = read_input(path, LARGEST_BYTES)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if data.startswith(GZIP) or data[257:262] == b"ustar":
        return _devkit(path, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no text; --val-labels takes {KNOWN}.") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UserError(f"{path} is empty; --val-labels takes {KNOWN}.")
    if lines[0].lower().startswith("imageid,"):
        return _kaggle(path, text)
    if all(line.isdecimal() for line in lines):
        raise UserError(
            f"{path} has numbers whose synsets it does not name; give the devkit's .tar.gz instead."
        )
    return _synsets(path, lines)


def _synsets(path: Path, lines: list[str]) -> Labels:
    """`n01440764`, or `ILSVRC2012_val_00000001.JPEG n01440764`."""
    synsets: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        *name, synset = line.replace(",", " ").split()
        if not SYNSET.fullmatch(synset) or len(name) > 1:
            raise UserError(f"{path}:{number}: '{line}' is no synset; --val-labels takes {KNOWN}.")
        image = NUMBERED.search(name[0]) if name else None
        if name and image is None:
            raise UserError(f"{path}:{number}: '{name[0]}' does not end in the number of an image.")
        synsets[int(image[1]) if image else number] = synset
    return Labels(synsets)


def _kaggle(path: Path, text: str) -> Labels:
    """`ILSVRC2012_val_00048981,n03995372 85 1 499 272`: the first word is the class of the image."""
    synsets: dict[int, str] = {}
    rows = csv.reader(io.StringIO(text, newline=""))
    next(rows)
    for row in rows:
        image = NUMBERED.search(row[0]) if row else None
        words = row[1].split() if len(row) > 1 else []
        if image is None or not words or not SYNSET.fullmatch(words[0]):
            raise UserError(f"{path}:{rows.line_num}: '{','.join(row)[:60]}' has no image and synset.")
        synsets[int(image[1])] = words[0]
    return Labels(synsets)


def _devkit(path: Path, data: bytes) -> Labels:
    files: dict[str, bytes] = {}
    try:
        if data.startswith(GZIP):
            data = zlib.decompressobj(GZIP_WINDOW).decompress(data, LARGEST_BYTES)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                # The holes of a sparse member would be filled in, to any size that it claims.
                if name not in (GROUND_TRUTH, META) or member.issparse():
                    continue
                if (file := tar.extractfile(member)) is not None:
                    files[name] = file.read()
        numbers = {int(entry["ILSVRC2012_ID"][0]): str(entry["WNID"]) for entry in structures(files[META])}
        truth = [int(line) for line in files[GROUND_TRUTH].split()]
    except KeyError as error:
        raise UserError(f"{path} has no {error.args[0]} in it; --val-labels takes {KNOWN}.") from error
    except (tarfile.TarError, OSError, EOFError, ValueError, IndexError, struct.error, zlib.error,
            StopIteration, RuntimeError) as error:  # fmt: skip
        raise UserError(f"{path} is damaged or no devkit ({error}); --val-labels takes {KNOWN}.") from error
    for line, number in enumerate(truth, 1):
        if number not in numbers:
            raise UserError(
                f"{path}: line {line} of {GROUND_TRUTH} has the class {number}, which {META} lacks."
            )
    return Labels({image: numbers[number] for image, number in enumerate(truth, 1)})
