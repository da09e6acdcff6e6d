"""Read XLA's profile, a serialized XSpace (`xplane.pb`), without a protobuf library.

`jax.profiler.ProfileData` gives times as floats, is new in JAX 0.5, and hides the warnings in which the
profiler tells what it dropped; the wire format needs few lines. The messages are those of
tsl/profiler/protobuf/xplane.proto.
"""

import collections

from trainmark.inside.wire import fields, signed

Event = collections.namedtuple(
    "Event", "name start_ps duration_ps stats"
)  # start since the epoch of the line
Line = collections.namedtuple("Line", "number name start_ns raw_events")
# `raw_stats` of the plane itself; `names` by metadata id; `metadata` is (name, raw stats) by id.
Plane = collections.namedtuple("Plane", "name lines events stat_names raw_stats")
Space = collections.namedtuple("Space", "planes errors warnings")


def read(data):
    """Return the Space of serialized bytes; the events of a line are read when asked for."""
    planes, errors, warnings = [], [], []
    for number, value in fields(memoryview(data)):
        if number == 1:
            planes.append(_plane(value))
        elif number == 2:
            errors.append(text(value))
        elif number == 3:
            warnings.append(text(value))
    return Space(planes, errors, warnings)


def events(plane, line):
    """Yield the events of a line; the stats of an event are those of its own and of its metadata."""
    for raw in line.raw_events:
        metadata = start = duration = 0
        raw_stats = []
        for number, value in fields(raw):
            if number == 1:
                metadata = value
            elif number == 2:
                start = signed(value)
            elif number == 3:
                duration = value
            elif number == 4:
                raw_stats.append(value)
        name, common = plane.events.get(metadata, ("", []))
        yield Event(name, line.start_ns * 1000 + start, duration, stats(plane, common + raw_stats))


def stats(plane, raw_stats):
    """Return the stats as a dict by name; of two of the same name the first counts."""
    values = {}
    for raw in raw_stats:
        name = value = None
        for number, field in fields(raw):
            if number == 1:
                name = plane.stat_names.get(field)
            elif number == 4:
                value = signed(field)
            elif number == 5:
                value = text(field)
            elif number == 7:
                value = plane.stat_names.get(field)
            else:  # uint64, bytes; a double stays its bits, as none is used
                value = field
        if name is not None:
            values.setdefault(name, value)
    return values


def text(value):
    return bytes(value).decode("utf-8", "replace")


def _plane(data):
    name, lines, metadata, stat_names, raw_stats = "", [], {}, {}, []
    for number, value in fields(data):
        if number == 2:
            name = text(value)
        elif number == 3:
            lines.append(_line(value))
        elif number == 4:
            key, entry = _entry(value)
            metadata[key] = _event_metadata(entry)
        elif number == 5:
            key, entry = _entry(value)
            stat_names[key] = next((text(field) for tag, field in fields(entry) if tag == 2), "")
        elif number == 6:
            raw_stats.append(value)
    return Plane(name, lines, metadata, stat_names, raw_stats)


def _line(data):
    number_of_line, name, display, start, raw_events = 0, "", "", 0, []
    for number, value in fields(data):
        if number == 1:
            number_of_line = signed(value)
        elif number == 2:
            name = text(value)
        elif number == 11:
            display = text(value)
        elif number == 3:
            start = signed(value)
        elif number == 4:
            raw_events.append(value)
    return Line(number_of_line, display or name, start, raw_events)


def _entry(data):
    """Return key and value of one entry of a map."""
    key, entry = 0, b""
    for number, value in fields(data):
        if number == 1:
            key = value
        else:
            entry = value
    return key, entry


def _event_metadata(data):
    name, raw_stats = "", []
    for number, value in fields(data):
        if number == 2:
            name = text(value)
        elif number == 5:
            raw_stats.append(value)
    return name, raw_stats
