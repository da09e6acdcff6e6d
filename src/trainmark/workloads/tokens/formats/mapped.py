"""A token file as a memory-mapped array: only what is looked at is read; UnfitTokens where it cannot be."""

import os
import stat

import numpy as np


class UnfitTokens(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had from these files; one sentence that says why and what to do."""


def size_of(path):
    """Return the bytes of a regular file; Unfit where it is none."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise UnfitTokens("{} cannot be read: {}.".format(path, error.strerror)) from error
    if not stat.S_ISREG(status.st_mode):
        raise UnfitTokens("{} is no regular file.".format(path))
    return status.st_size


def first_bytes(path, count):
    size_of(path)
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except OSError as error:
        raise UnfitTokens("{} cannot be read: {}.".format(path, error.strerror)) from error


def map_ids(path, dtype, offset, count):
    """Return `count` ids from byte `offset` on; none cannot be mapped, and are an empty array."""
    if not count:
        return np.empty(0, dtype)
    try:
        # A plain array over the same memory: slices of a memmap cost microseconds each.
        return np.asarray(np.memmap(path, np.dtype(dtype), "r", offset, (count,)))
    except (OSError, ValueError) as error:
        raise UnfitTokens("{} cannot be mapped: {}.".format(path, error)) from error
