"""The records that the library in C has written, as a Chrome trace."""

import collections
import ctypes
import struct

from trainmark.profiler import chrome

# As `struct record` of injection.c.
FORMAT = struct.Struct("=IIQQIIIIQQ")
Record = collections.namedtuple(
    "Record", "type name start end correlation device place graph graph_node bytes"
)
HEADER = 0x544D4355
NAME, DEVICE, KERNEL, COPY, MEMSET, RUNTIME, DRIVER, END = range(1, 9)
DEVICE_CATEGORIES = {KERNEL: chrome.KERNEL, COPY: chrome.COPY, MEMSET: chrome.MEMSET}
# By CUpti_ActivityMemcpyKind, in Kineto's words.
COPY_KINDS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}

# A named range of the host, on the clock of the records.
Annotation = collections.namedtuple("Annotation", "name start end thread")


class BrokenRecordsError(ValueError):
    """The file is not one of records, or ends before its last."""


def read(file):
    """Yield each record and its text, up to the last one, which has the type END."""
    head = Record(*FORMAT.unpack(_take(file, FORMAT.size)))
    if head.type != HEADER or head.name != FORMAT.size:
        raise BrokenRecordsError("This is no file of CUPTI records.")
    while True:
        record = Record(*FORMAT.unpack(_take(file, FORMAT.size)))
        text = _take(file, record.bytes) if record.type in (NAME, DEVICE) else b""
        yield record, text.decode("utf-8", "replace")
        if record.type == END:
            return


def convert(path, annotations, output, process):
    """Write the records at `path` and the host's annotations as a trace; return how many were dropped.

    Of CUPTI's buffers that no memory was left for, one record each is counted: how many it is, nobody knows.
    """
    with open(path, "rb") as file:
        devices, origin = _survey(file)
        starts = [annotation.start for annotation in annotations]
        origin = min([origin] + starts) if starts else origin
        file.seek(0)
        with chrome.TraceWriter(output, devices, origin, {"trainmark_source": "cupti"}) as writer:
            for annotation in annotations:
                start, end = annotation.start - origin, annotation.end - origin
                writer.span(chrome.ANNOTATION, annotation.name, start, end, process, annotation.thread)
            writer.lost = _write(writer, file, origin, process)
            return writer.lost


def _survey(file):
    """Return the names of the devices and the first time of all."""
    devices, first = {}, None
    for record, text in read(file):
        if record.type == DEVICE:
            devices[record.device] = text
        elif KERNEL <= record.type <= DRIVER and record.start:
            first = record.start if first is None else min(first, record.start)
    return [devices.get(number, "") for number in range(max(devices, default=-1) + 1)], first or 0


def _write(writer, file, origin, process):
    names = {}
    for record, text in read(file):
        start, end = record.start - origin, record.end - origin
        if record.type == NAME:
            names[record.name] = demangled(text)
        elif record.type in DEVICE_CATEGORIES:
            # CUPTI gives 0 for both times where it could not take them.
            if record.start:
                category = DEVICE_CATEGORIES[record.type]
                name = _device_name(record, names)
                writer.span(category, name, start, end, record.device, record.place, _arguments(record))
        elif record.type in (RUNTIME, DRIVER):
            category = chrome.RUNTIME if record.type == RUNTIME else chrome.DRIVER
            args = {"correlation": record.correlation}
            writer.span(category, names.get(record.name, ""), start, end, process, record.place, args)
        elif record.type == END:
            return record.bytes + record.end
    return 0


def _device_name(record, names):
    if record.type == KERNEL:
        return names.get(record.name, "")
    return "Memcpy {}".format(COPY_KINDS.get(record.name, "")) if record.type == COPY else "Memset (Device)"


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


def _take(file, size):
    data = file.read(size)
    if len(data) != size:
        raise BrokenRecordsError("The CUPTI records end early: the program ended while they were written.")
    return data
