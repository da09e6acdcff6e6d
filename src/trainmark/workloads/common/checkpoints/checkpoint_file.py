"""One rank's file of a checkpoint: `rank0.npz`, and `rank0.json` with its length and CRC-32.

A file of Trainmark 0.1 has no such record; it is checked by the CRC-32 that the archive holds of each member.
"""

import json
import os
import zlib

import numpy as np

CHUNK_BYTES = 1 << 20


class UnreadableError(RuntimeError):
    """A file that is missing, cut short or altered; the message names it and says how."""


def write(folder, rank, values):
    """Write the arrays and their record to disk; return the bytes of the archive."""
    path = _archive(folder, rank)
    with open(path, "wb") as file:
        np.savez(file, **values)
        file.flush()
        os.fsync(file.fileno())
    size, crc32 = measure(path)
    with open(_record(folder, rank), "w") as file:
        json.dump({"bytes": size, "crc32": crc32}, file)
        file.flush()
        os.fsync(file.fileno())
    return size


def read(folder, rank):
    """Return the arrays by name, after comparing the file with its record."""
    path = _archive(folder, rank)
    try:
        _compare(path, _record(folder, rank))
        with open(path, "rb") as file:  # which numpy leaves open where it finds no archive
            archive = np.load(file)
            return {name: archive[name] for name in archive.files}
    except UnreadableError:
        raise
    except Exception as error:  # damaged bytes end in a dozen kinds of exception in zipfile and numpy
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UnreadableError("{} cannot be read ({})".format(os.path.basename(path), reason)) from error


def measure(path):
    """Return length and CRC-32 of a file."""
    size = crc32 = 0
    with open(path, "rb") as file:
        while True:
            chunk = file.read(CHUNK_BYTES)
            if not chunk:
                return size, crc32
            size, crc32 = size + len(chunk), zlib.crc32(chunk, crc32)


def _compare(path, record):
    if not os.path.exists(record):
        return
    with open(record) as file:
        expected = json.load(file)
    if os.path.getsize(path) != expected["bytes"]:
        raise UnreadableError(
            "{} has {} bytes of {}".format(os.path.basename(path), os.path.getsize(path), expected["bytes"])
        )
    if measure(path)[1] != expected["crc32"]:
        raise UnreadableError("{} has another CRC-32 than when it was written".format(os.path.basename(path)))


def _archive(folder, rank):
    return os.path.join(folder, "rank{}.npz".format(rank))


def _record(folder, rank):
    return os.path.join(folder, "rank{}.json".format(rank))
