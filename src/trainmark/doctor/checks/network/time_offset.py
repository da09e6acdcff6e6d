"""Whether the clocks go alike: with those of the other nodes, and with ours as far as the way lets us see.

The nodes read each other's clocks over a connection that is open already, to less than a millisecond. Our
own question travels with the start of a process, so that only its bounds are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from trainmark.doctor.examined import Call, Examined
from trainmark.doctor.facts import Offset
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import OFFSET_BAD_SECONDS, OFFSET_WARN_SECONDS


def find(examined: Examined) -> Iterator[Finding]:
    among = among_nodes(examined.calls)
    for node in examined.nodes:
        if node.offset is not None:
            own = among.get(node.name)
            findings = [*_of(node.name, own, "the other nodes'"), *_of(node.name, node.offset, "ours")]
            yield from findings or [ok(node.name, _value(own or node.offset))]


def among_nodes(calls: Sequence[Call]) -> dict[str, Offset]:
    """Each against the middle one, so that a wrong clock is not laid at the others' door.

    Of two, the second against the first.
    """
    first = calls[0].caller if calls else ""
    seen = {
        call.called: Offset(call.ahead, call.seconds / 2)
        for call in calls
        if call.caller == first and call.ahead is not None and call.seconds is not None
    }
    if not seen:
        return {}
    seen = {first: Offset(0.0, 0.0), **seen}
    middle = median(offset.seconds for offset in seen.values()) if len(seen) > 2 else 0.0
    return {node: Offset(offset.seconds - middle, offset.uncertainty) for node, offset in seen.items()}


def _of(node: str, offset: Offset | None, whose: str) -> Iterator[Finding]:
    if offset is None:
        return
    certain = abs(offset.seconds) - offset.uncertainty
    if certain > OFFSET_WARN_SECONDS:
        ahead = "ahead of" if offset.seconds > 0 else "behind"
        what = f"its clock is {abs(offset.seconds):.2f} ± {offset.uncertainty:.1g} s {ahead} {whose}"
        fix = f"on {node}: `sudo apt-get install chrony && sudo chronyc makestep`"
        yield (bad if certain > OFFSET_BAD_SECONDS else warn)(node, _value(offset), what, fix)


def _value(offset: Offset) -> str:
    if abs(offset.seconds) < 1.0:
        digits = 2 if offset.uncertainty < 0.001 else 0
        return f"{offset.seconds * 1000:+.{digits}f} ± {offset.uncertainty * 1000:.{digits}f} ms"
    return f"{offset.seconds:+.2f} ± {offset.uncertainty:.1g} s"


CHECK = Check("time offset", About.HOST, find)
