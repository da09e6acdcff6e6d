"""Our own decoder in C over libjpeg-turbo, through ctypes: built on first use, never at import.

`TRAINMARK_JPEG_LIBRARY` names one that was built elsewhere
(`python -m trainmark.workloads.images.native OUT.so` makes one that needs no libjpeg on its machine).
"""

import ctypes
import os
import threading

import numpy as np

from trainmark.workloads.images.native.build import Unbuilt, cached

WHY_BYTES = 256  # as in jpeg.h
# One image of a batch, as in batch.c: the address of its path or 0, else the descriptor of its shard.
RECORD = np.dtype([("path", "u8"), ("file", "i8"), ("offset", "u8"), ("size", "u8"), ("index", "i8")])

_guard = threading.Lock()
_loaded = None


class Failed(Exception):  # noqa: N818
    """libjpeg's own words."""


class _Window(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("left", "top", "width", "height")] + [
        (name, ctypes.c_int) for name in ("flip", "inside")
    ]


class Library:
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
            raise Failed(why.value.decode(errors="replace"))
        return size[0], size[1]

    def decode(self, data, window, out):
        """`out` is uint8 (size, size, 3), in one piece."""
        why = ctypes.create_string_buffer(WHY_BYTES)
        if self._decode(data, len(data), ctypes.byref(_Window(*window)), out.shape[0], out.ctypes.data, why):
            raise Failed(why.value.decode(errors="replace"))

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
        return Library(named or cached())
    except Unbuilt as error:
        return error
    except (OSError, AttributeError) as error:
        return Unbuilt(f"the library cannot be loaded: {error}")
