"""Whether nodes answer and reach each other; their interfaces, InfiniBand ports, free ports and clocks.

The nodes read each other's clocks over a connection that is open already, to less than a millisecond. Our
own question travels with the start of a process, so that only its bounds are known.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median

from trainmark.machine.examination import (
    ClockOffset,
    Examination,
    NodeCall,
    NodeFacts,
    most_common,
)
from trainmark.machine.findings import (
    OFFSET_BAD_SECONDS,
    OFFSET_WARN_SECONDS,
    PORT_RANGE,
    ROUND_TRIP_SECONDS,
    CheckArea,
    NodeFinding,
    NodeReport,
    node_check,
)

# What ssh, srun and shells say, and what helps; the first that matches.
ANSWER_FIXES = (
    (r"permission denied", "give it your key: `ssh-copy-id {node}`"),
    (
        r"host key verification|identification has changed|no .* host key is known",
        "compare its fingerprint with what its administrator says, then accept it once: `ssh {node} true`",
    ),
    (r"resolve|not known|unknown host", "add it to DNS, /etc/hosts or ~/.ssh/config: `getent hosts {node}`"),
    (r"refused", "start sshd there, or name its port in ~/.ssh/config: `ssh {node} true`"),
    (
        r"python3?.*not found",
        "install Python 3.9 or newer there: `ssh {node} python3 -V`",
    ),
    (r"SyntaxError|ModuleNotFound", "its python3 is too old or not whole: `ssh {node} python3 -V`"),
)
OTHER_FIX = "try `ssh {node} true`, or leave it out with --exclude {node}"


@node_check("answers", CheckArea.REACH, essential=True)
def answers(examined: Examination) -> Iterator[NodeFinding]:
    for node in examined.nodes:
        report = NodeReport(node.name, "no" if node.facts is None else "yes")
        if node.facts is None:
            trouble = node.trouble or ""
            report.bad(f"it does not answer: {trouble}", answer_fix(node.name, trouble))
        yield from report


def answer_fix(node: str, trouble: str) -> str:
    fitting = (fix for pattern, fix in ANSWER_FIXES if re.search(pattern, trouble, re.IGNORECASE))
    return next(fitting, OTHER_FIX).format(node=shlex.quote(node))


@node_check("reaches the others", CheckArea.REACH, essential=True)
def reaches_others(examined: Examination) -> Iterator[NodeFinding]:
    addresses = {name: facts.address for name, facts in examined.facts()}
    for caller, calls in groupby(examined.calls, key=lambda call: call.caller):
        made = list(calls)
        taken = [call.seconds for call in made if call.seconds is not None]
        value = f"{len(taken)} of {len(made)}" + (f", {max(taken) * 1000:.2f} ms" if taken else "")
        report = NodeReport(caller, value)
        for call in made:
            _judge_call(report, call, addresses.get(caller))
        yield from report


def _judge_call(report: NodeReport, call: NodeCall, source: str | None) -> None:
    if call.seconds is None:
        report.bad(
            f"it cannot reach {call.called} at {call.address} port {call.port}: {call.trouble}",
            f"let it through on {call.called}: `sudo iptables -I INPUT -p tcp -s {source} -j ACCEPT`; "
            f"if nothing drops it there, look at the route: `ip route get {call.address}` on {call.caller}",
            peer=call.called,
        )
    elif call.seconds > ROUND_TRIP_SECONDS:
        report.warn(
            f"a round trip to {call.called} takes {call.seconds * 1000:.1f} ms, which is another place's",
            f"see which way it takes: `ip route get {call.address}` on {call.caller}",
            peer=call.called,
        )


@node_check("interface", CheckArea.NETWORK)
def interface(examined: Examination) -> Iterator[NodeFinding]:
    interfaces = {name: facts.interface for name, facts in examined.facts()}
    usual_mtu = most_common({name: own.mtu for name, own in interfaces.items() if own})
    usual_speed = most_common({name: own.speed_mbps for name, own in interfaces.items() if own})
    for node, own in interfaces.items():
        if own is None:
            asked = examined.wanted.interfaces.get(node)
            report = NodeReport(node, "none")
            report.bad(
                f"there is no interface {asked}" if asked else "it has no network interface",
                f"on {node}: `ip -brief address` names those there are; give one with --interface",
            )
            yield from report
            continue
        name = shlex.quote(own.name)
        report = NodeReport(
            node, ", ".join(filter(None, [own.name, f"MTU {own.mtu}", _speed(own.speed_mbps)]))
        )
        if own.state in ("down", "lowerlayerdown") or not own.addresses:
            lacks = "is down" if own.addresses else "has no address"
            report.bad(f"{own.name} {lacks}", f"on {node}: `sudo ip link set dev {name} up`")
        if own.mtu != usual_mtu:
            report.bad(
                f"{own.name} has an MTU of {own.mtu}, on the others {usual_mtu}: large messages may get lost",
                f"on {node}: `sudo ip link set dev {name} mtu {usual_mtu}`",
            )
        if own.speed_mbps != usual_speed:
            report.bad(
                f"{own.name} runs at {_speed(own.speed_mbps) or 'a speed not told'}, "
                f"the others' at {_speed(usual_speed) or 'a speed not told'}",
                f"on {node}: look at cable and switch port; `sudo ethtool {name}`",
            )
        yield from report


def _speed(mbps: int | None) -> str:
    return f"{mbps / 1000:g} Gb/s" if mbps else ""


PORT_STATE_FIXES = {
    "INIT": "no subnet manager has seen it: `sudo systemctl start opensm` on one host of the fabric",
    "DOWN": "look at cable and switch port: `ibstat {device}`",
}


@node_check("InfiniBand", CheckArea.NETWORK)
def infiniband(examined: Examination) -> Iterator[NodeFinding]:
    rates = examined.each(active_rates)
    usual = most_common(rates)
    for node, facts in examined.facts():
        own = rates[node]
        report = NodeReport(node, ", ".join(own) or ("none active" if facts.infiniband else "none"))
        for port in facts.infiniband:
            if port.state != "ACTIVE":
                what = f"{port.device} port {port.port} is {port.state or 'in an unknown state'}"
                fix = PORT_STATE_FIXES.get(port.state or "", "`ibstat {device}`")
                report.warn(what, f"on {node}: {fix.format(device=shlex.quote(port.device))}")
        if own != usual:
            report.bad(
                f"its active ports are {report.value}, the others' {', '.join(usual or ()) or 'none'}",
                f"on {node}: `ibstat` shows state and rate of each port; look at cables and switch ports",
            )
        yield from report


def active_rates(facts: NodeFacts) -> tuple[str, ...]:
    return tuple(sorted(port.rate or "rate not told" for port in facts.infiniband if port.state == "ACTIVE"))


@node_check("free ports", CheckArea.NETWORK)
def free_ports(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        if not facts.ports:
            continue
        free = [port for port, is_free in facts.ports.items() if is_free]
        taken = [port for port, is_free in facts.ports.items() if is_free is False]
        report = NodeReport(node, f"{len(free)} of {len(facts.ports)}")
        if any(is_free is None for is_free in facts.ports.values()):
            report.bad(
                f"its address {facts.address} is not one that it has itself",
                f"on {node}: `ip -brief address` names its addresses; give one of them in the inventory",
                "not told",
            )
        elif taken:
            (report.warn if free else report.bad)(
                f"taken on {facts.address}: {', '.join(map(str, taken))}",
                f"on {node}: `sudo ss -ltnp 'sport = :{taken[0]}'` names by whom; "
                "or give others with --ports",
            )
        elif facts.port_range and facts.port_range[1] - facts.port_range[0] < PORT_RANGE:
            low, high = facts.port_range
            report.warn(
                f"only ports {low} to {high} are for outgoing connections",
                f"on {node}: `sudo sysctl net.ipv4.ip_local_port_range='32768 60999'`",
            )
        yield from report


@node_check("time offset", CheckArea.HOST)
def time_offset(examined: Examination) -> Iterator[NodeFinding]:
    among = offsets_among_nodes(examined.calls)
    for node in examined.nodes:
        if node.offset is not None:
            own = among.get(node.name)
            report = NodeReport(node.name, _offset_value(own or node.offset))
            for offset, whose in ((own, "the other nodes'"), (node.offset, "ours")):
                if offset is not None:
                    _judge_clock(report, offset, whose)
            yield from report


def offsets_among_nodes(calls: Sequence[NodeCall]) -> dict[str, ClockOffset]:
    """Each against the middle one, so that a wrong clock is not laid at the others' door.

    Of two, the second against the first.
    """
    first = calls[0].caller if calls else ""
    seen = {
        call.called: ClockOffset(call.ahead, call.seconds / 2)
        for call in calls
        if call.caller == first and call.ahead is not None and call.seconds is not None
    }
    if not seen:
        return {}
    seen = {first: ClockOffset(0.0, 0.0), **seen}
    middle = median(offset.seconds for offset in seen.values()) if len(seen) > 2 else 0.0
    return {node: ClockOffset(offset.seconds - middle, offset.uncertainty) for node, offset in seen.items()}


def _judge_clock(report: NodeReport, offset: ClockOffset, whose: str) -> None:
    certain = abs(offset.seconds) - offset.uncertainty
    if certain > OFFSET_WARN_SECONDS:
        ahead = "ahead of" if offset.seconds > 0 else "behind"
        (report.bad if certain > OFFSET_BAD_SECONDS else report.warn)(
            f"its clock is {abs(offset.seconds):.2f} ± {offset.uncertainty:.1g} s {ahead} {whose}",
            f"on {report.node}: `sudo apt-get install chrony && sudo chronyc makestep`",
            _offset_value(offset),
        )


def _offset_value(offset: ClockOffset) -> str:
    if abs(offset.seconds) < 1.0:
        digits = 2 if offset.uncertainty < 0.001 else 0
        return f"{offset.seconds * 1000:+.{digits}f} ± {offset.uncertainty * 1000:.{digits}f} ms"
    return f"{offset.seconds:+.2f} ± {offset.uncertainty:.1g} s"
