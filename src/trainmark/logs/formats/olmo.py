"""OLMo's reports, a line a metric, as one line of ours each."""

import re
from collections.abc import Iterable, Iterator

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
        for line in block.split(b"\n"):
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
