"""Our own events, as `trainmark.probe` writes them: one JSON object a line, one file a rank."""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat

NUMBER = rb"[-+.\deE]+|NaN|-?Infinity"


def fact(name: str, value: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'"event": ?"run_start"[^\n]*?"%b": ?%b' % (name.encode(), value))


FORMAT = Format(
    name="trainmark-events",
    title="Trainmark's own events",
    framework=None,
    sign=re.compile(rb'\{"event": ?"(?:run_start|step)", ?"rank": ?\d+'),
    step=re.compile(
        rb'\{"event": ?"step", ?"rank": ?(?P<rank>\d+)(?:, ?"mono": ?(?P<wall>[\d.]+))?(?:, ?"wall": ?[^,]+)?'
        rb', ?"step": ?(?P<step>\d+)(?:, ?"samples": ?(?P<samples>[\d.]+))?'
        rb'(?:, ?"loss": ?(?P<loss>%b))?(?:, ?"lr": ?(?P<lr>%b))?' % (NUMBER, NUMBER)
    ),
    rate=Rate("samples", Scope.RANK, Kind.INSTANT, every_rank=True),
    clock=TimeFormat.UNIX,
    settings=(
        Setting("unit", fact("unit", rb'"(?P<value>\w+)"')),
        Setting("scope", fact("scope", rb'"(?P<value>rank|global)"')),
        Setting("world_size", fact("world_size", rb"(?P<value>\d+)"), convert=int),
        Setting("framework", fact("framework", rb'"(?P<value>[^"]+)"')),
        Setting("framework_version", fact("framework_version", rb'"(?P<value>[^"]+)"')),
        Setting("precision", fact("precision", rb'"(?P<value>[^"]+)"')),
        Setting("layout", fact("layout", rb'"(?P<value>[^"]+)"')),
        Setting("batch_per_device", fact("batch_per_device", rb"(?P<value>\d+)"), convert=int),
    ),
    start=re.compile(rb'\{"event": ?"run_start"'),
)
