"""The records that the library in C has written, as a Chrome trace."""

import collections
import contextlib
import ctypes
import mmap
import os
import re
import struct
from typing import List, Sequence, Tuple

from trainmark.inside.profiler import chrome

# As `struct record` of injection.c.
FORMAT = struct.Struct("=IIQQIIIIQQ")
Record = collections.namedtuple(
    "Record", "type name start end correlation device place graph graph_node bytes"
)
HEADER = 0x544D4355
NAME, DEVICE, KERNEL, COPY, MEMSET, RUNTIME, DRIVER, END = range(1, 9)
DEVICE_CATEGORIES = {KERNEL: chrome.KERNEL, COPY: chrome.COPY, MEMSET: chrome.MEMSET}
# By CUpti_ActivityMemcpyKind, in Kineto's words.
COPY_KINDS = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")

# "cudaLaunchKernel_ptsz_v7000", as CUPTI names calls, and "cuMemAlloc_v2"
VERSION = re.compile(r"(_pt[ds][sz])?(_v\d+)?(_pt[ds][sz])?$")

EARLY_END = "The CUPTI records end early: the program ended while they were written."
HEAD_BYTES = 1 << 16

# A named range of the host, on the clock of the records.
Annotation = collections.namedtuple("Annotation", "name start end thread")


class BrokenRecordsError(ValueError):
    """The file is not one of records, or ends before its last."""


def read(data):
    """Yield each record and its text, from the header to the last one, which has the type END."""
    position, size = 0, len(data)
    record = None
    while record is None or record.type != END:
        if position + FORMAT.size > size:
            raise BrokenRecordsError(EARLY_END)
        record = Record._make(FORMAT.unpack_from(data, position))
        position += FORMAT.size
        text = ""
        if record.type in (NAME, DEVICE):
            if position + record.bytes > size:
                raise BrokenRecordsError(EARLY_END)
            text = data[position : position + record.bytes].decode("utf-8", "replace")
            position += record.bytes
        yield record, text


def convert(path: str, annotations: Sequence[Annotation], output: str, process: int) -> int:
    """Write the records at `path` and the host's annotations as a trace; return how many were dropped.

    Of CUPTI's buffers that no memory was left for, one record each is counted: how many it is, nobody knows.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size < FORMAT.size:
            raise BrokenRecordsError(EARLY_END)
        with contextlib.closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
            origin, devices = _head(data)
            facts = {"trainmark_source": "cupti"}
            with chrome.TraceWriter(output, devices, 0, facts) as writer:
                for annotation in annotations:
                    start, end = annotation.start - origin, annotation.end - origin
                    writer.span(chrome.ANNOTATION, annotation.name, start, end, process, annotation.thread)
                writer.lost = _write(writer, data, origin, process)
                return writer.lost


def device_names(path: str) -> List[str]:
    """Return the names of the devices that the program saw, by their number."""
    with open(path, "rb") as file:
        return _head(file.read(HEAD_BYTES))[1]


def began(path: str) -> Tuple[int, int]:
    """Return when recording began, in nanoseconds of CUPTI's clock and of the host's monotonic one."""
    with open(path, "rb") as file:
        head, _ = next(read(file.read(FORMAT.size)))
    return head.start, head.end


def _head(data):
    """Return the time at which recording began, and the names of the devices, which follow at once."""
    devices = []
    records = read(data)
    head, _ = next(records)
    if head.type != HEADER or head.name != FORMAT.size:
        raise BrokenRecordsError("This is no file of CUPTI records.")
    for record, text in records:
        if record.type != DEVICE:
            break
        devices.append(text)
    return head.start, devices


def _write(writer, data, origin, process):
    names, calls = {}, {}
    for record, text in read(data):
        kind = record.type
        if kind in DEVICE_CATEGORIES:
            # CUPTI gives 0 for both times where it could not take them.
            if record.start:
                writer.span(
                    DEVICE_CATEGORIES[kind],
                    _device_name(record, names),
                    record.start - origin,
                    record.end - origin,
                    record.device,
                    record.place,
                    _arguments(record),
                )
        elif kind in (RUNTIME, DRIVER):
            writer.span(
                chrome.RUNTIME if kind == RUNTIME else chrome.DRIVER,
                calls.get(record.name, ""),
                record.start - origin,
                record.end - origin,
                process,
                record.place,
                {"correlation": record.correlation},
            )
        elif kind == NAME:
            names[record.name] = demangled(text)
            calls[record.name] = VERSION.sub("", text)
        elif kind == END:
            return record.bytes + record.end
    return 0


def _device_name(record, names):
    if record.type == KERNEL:
        return names.get(record.name, "")
    if record.type == MEMSET:
        return "Memset (Device)"
    return "Memcpy {}".format(COPY_KINDS[record.name] if record.name < len(COPY_KINDS) else "")


def _arguments(record):
    args = {"device": record.device, "stream": record.place, "correlation": record.correlation}
    if record.type != KERNEL:
        args["bytes"] = record.bytes
    if record.graph_node:
        args["graph id"] = record.graph
        args["graph node id"] = record.graph_node
    return args


def demangled(name):
    """Return a kernel's name as its author wrote it, by the C++ library of the process if there is one."""
    function = _demangler() if name.startswith("_Z") else None
    if function is None:
        return name
    status = ctypes.c_int()
    text = function(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.cast(text, ctypes.c_char_p).value.decode("utf-8", "replace")
    finally:
        _free(text)


def _demangler():
    if "function" not in _CACHE:
        try:
            function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
            function.restype = ctypes.c_void_p
            function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        except (OSError, AttributeError):
            function = None
        _CACHE["function"] = function
    return _CACHE["function"]


_CACHE = {}


def _free(pointer):
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    free(pointer)
