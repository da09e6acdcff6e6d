"""llm.c's `.bin`: 256 int32 (magic, version, number of tokens, zeros), then the ids.

Magic 20240520 with version 1 has uint16 ids (GPT-2), 20240801 with version 7 uint32 (Llama 3).
"""

import numpy as np

from trainmark.workloads.tokens.formats import mapped
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

NAME = "llmc"
HEADER = 256
HEADER_BYTES = 4 * HEADER
KINDS = {20240520: (1, "<u2"), 20240801: (7, "<u4")}  # magic: version, ids


def open_file(path):
    """Return the ids, memory-mapped."""
    head = mapped.first_bytes(path, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        raise UnfitTokens(
            "{} has {} bytes, fewer than llm.c's header of {}.".format(path, len(head), HEADER_BYTES)
        )
    header = np.frombuffer(head, "<i4")
    magic, version, count = (int(number) for number in header[:3])
    if magic not in KINDS:
        known = " or ".join(map(str, sorted(KINDS)))
        raise UnfitTokens("{} begins with {}, llm.c's magic number is {}.".format(path, magic, known))
    expected, dtype = KINDS[magic]
    if version != expected:
        raise UnfitTokens(
            "{} is of version {}; llm.c's {} has version {}.".format(path, version, magic, expected)
        )
    room = mapped.size_of(path) - HEADER_BYTES
    width = np.dtype(dtype).itemsize
    if count < 0 or room != count * width:
        raise UnfitTokens(
            "{} says {} tokens of {} bytes, and has {} bytes behind its header: it is cut or damaged.".format(
                path, count, width, room
            )
        )
    return mapped.map_ids(path, dtype, HEADER_BYTES, count)


def header(count, dtype):
    """Return the header of a file with so many ids of this type."""
    (magic,) = [magic for magic, kind in KINDS.items() if np.dtype(kind[1]) == np.dtype(dtype)]
    numbers = np.zeros(HEADER, "<i4")
    numbers[:3] = magic, KINDS[magic][0], count
    return numbers.tobytes()


def looks_like(path):
    """Whether it has llm.c's header: its magic, or where that is damaged, its zeros and its size."""
    head = mapped.first_bytes(path, HEADER_BYTES)
    numbers = np.frombuffer(head[: len(head) // 4 * 4], "<i4")
    if len(numbers) and int(numbers[0]) in KINDS:
        return True
    if len(numbers) < HEADER or numbers[3:].any():
        return False
    room = mapped.size_of(path) - HEADER_BYTES
    return int(numbers[2]) > 0 and room in (2 * int(numbers[2]), 4 * int(numbers[2]))
