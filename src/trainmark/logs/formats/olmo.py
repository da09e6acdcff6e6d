"""OLMo's console: `[step=10/10000,epoch=0]`, then a line a metric, as `  throughput/total_tokens=5,242,880`.

`total_tokens` counts all devices since the first run; a batch is the whole job's.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat
from trainmark.logs.formats._common import without_groups

BEGIN = re.compile(
    rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d+)?[^\n]{0,200}\[step=(\d+)/\d+(?:,epoch=\d+)?\]"
)
METRIC = re.compile(
    rb"\s+(train/CrossEntropyLoss|throughput/total_tokens)=(\S+)\s*$|\s+throughput/device/bat"
    rb"ches_per_second=(\S+)\s*$"
)


def reports(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each report of several lines as one line of ours, where its speed is told."""
    report: dict[bytes, bytes] = {}
    for block in blocks:
        written = []
        for line in without_groups(block).split(b"\n"):
            if begin := BEGIN.search(line):
                report = {b"wall": begin[1] or b"", b"step": begin[2]}
            elif report and (metric := METRIC.match(line)):
                if metric[3] is None:
                    report[metric[1]] = metric[2]
                else:
                    written.append(_line(report, metric[3]))
                    report = {}
            elif report and line[:1] not in (b" ", b"\t", b""):
                report = {}
                written.append(line + b"\n")
            elif not report:
                written.append(line + b"\n")
        yield b"".join(written)


def _line(report: dict[bytes, bytes], pace: bytes) -> bytes:
    try:
        seconds = 1 / float(pace)
        tokens = float(report[b"throughput/total_tokens"]) / int(report[b"step"])
    except (KeyError, ValueError, ZeroDivisionError):
        return b""
    loss = report.get(b"train/CrossEntropyLoss", b"")
    return b"olmo: step=%b seconds=%.6f tokens=%.3f loss=%b wall=%b\n" % (
        report[b"step"],
        seconds,
        tokens,
        loss,
        report[b"wall"],
    )


FORMAT = Format(
    name="olmo",
    title="OLMo",
    framework="pytorch",
    sign=re.compile(rb"\n[ \t]{1,80}throughput/(?:total_tokens|device/tokens_per_second)="),
    step=re.compile(
        rb"olmo: step=(?P<step>\d+) seconds=(?P<seconds>\S+) tokens=(?P<step_samples>\S+) loss=(?P<loss>\S*) "
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.ISO,
    settings=(Setting("ended", re.compile(rb"SignalException: Process \d+ got (?P<value>signal: \d+)")),),
    rewrite=reports,
)
