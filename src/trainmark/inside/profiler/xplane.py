"""Read XLA's profile, a serialized XSpace (`xplane.pb`), without a protobuf library.

`jax.profiler.ProfileData` gives times as floats, is new in JAX 0.5, and hides the warnings in which the
profiler tells what it dropped; the wire format needs few lines. The messages are those of
tsl/profiler/protobuf/xplane.proto.
"""

import collections

from trainmark.inside.wire import fields, grouped, signed

Event = collections.namedtuple(
    "Event", "name start_ps duration_ps stats"
)  # start since the epoch of the line
Line = collections.namedtuple("Line", "number name start_ns raw_events")
# `raw_stats` of the plane itself; `names` by metadata id; `metadata` is (name, raw stats) by id.
Plane = collections.namedtuple("Plane", "name lines events stat_names raw_stats")
Space = collections.namedtuple("Space", "planes errors warnings")


def read(data):
    """Return the Space of serialized bytes; the events of a line are read when asked for."""
    parts = grouped(memoryview(data))
    return Space(
        [_plane(plane) for plane in parts.get(1, ())], _texts(parts.get(2, ())), _texts(parts.get(3, ()))
    )


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


def _texts(values):
    return [text(value) for value in values]


def last_text(parts, number):
    return text(parts[number][-1]) if number in parts else ""


def _plane(data):
    parts = grouped(data)
    metadata = {key: (last_text(entry, 2), entry.get(5, [])) for key, entry in _entries(parts.get(4, ()))}
    stat_names = {key: last_text(entry, 2) for key, entry in _entries(parts.get(5, ()))}
    lines = [_line(line) for line in parts.get(3, ())]
    return Plane(last_text(parts, 2), lines, metadata, stat_names, parts.get(6, []))


def _line(data):
    parts = grouped(data)
    number, start = (signed(parts.get(field, [0])[-1]) for field in (1, 3))
    return Line(number, last_text(parts, 11) or last_text(parts, 2), start, parts.get(4, []))


def _entries(entries):
    """Yield key and value of each entry of a map, the value as its fields."""
    for entry in entries:
        parts = grouped(entry)
        yield parts.get(1, [0])[-1], grouped(parts.get(2, [b""])[-1])
