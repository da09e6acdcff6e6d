"""Whether each node reaches every other, in both directions, and how long a round trip takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from trainmark.doctor.examined import Call, Examined
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import ROUND_TRIP_SECONDS


def find(examined: Examined) -> Iterator[Finding]:
    addresses = {name: facts.address for name, facts in examined.facts()}
    for caller, calls in groupby(examined.calls, key=lambda call: call.caller):
        made = list(calls)
        taken = [call.seconds for call in made if call.seconds is not None]
        value = f"{len(taken)} of {len(made)}" + (f", {max(taken) * 1000:.2f} ms" if taken else "")
        troubled = [finding for call in made for finding in _of(call, addresses.get(caller), value)]
        yield from troubled or [ok(caller, value)]


def _of(call: Call, source: str | None, value: str) -> Iterator[Finding]:
    target = f"{call.address} port {call.port}"
    if call.seconds is None:
        yield bad(
            call.caller,
            value,
            f"it cannot reach {call.called} at {target}: {call.trouble}",
            f"let it through on {call.called}: `sudo iptables -I INPUT -p tcp -s {source} -j ACCEPT`; "
            f"if nothing drops it there, look at the route: `ip route get {call.address}` on {call.caller}",
            call.called,
        )
    elif call.seconds > ROUND_TRIP_SECONDS:
        yield warn(
            call.caller,
            value,
            f"a round trip to {call.called} takes {call.seconds * 1000:.1f} ms, which is another place's",
            f"see which way it takes: `ip route get {call.address}` on {call.caller}",
            call.called,
        )


CHECK = Check("reaches the others", About.REACH, find, essential=True)
