"""Several ranks side by side: what each computes, whom it waits for, what its collectives reach."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trainmark.explain.explanation import CollectiveBucket, RankTime
from trainmark.explain.kernel_classes import COMMUNICATION, own_classes
from trainmark.explain.profile import (
    NO_INTERVALS,
    HostKind,
    Intervals,
    Operands,
    Profile,
    clip,
    intersect,
    subtract,
    total_length,
    union,
)
from trainmark.explain.trace_events import collective_rows
from trainmark.measure.fabric import AllReduce, FabricMeasurement, alpha_beta_model, bus_factor
from trainmark.view.message import _

# A rank is waited for where it costs the others this share of the step: below, ranks take turns.
LATE_SHARE = 0.01
MOST_BUCKETS = 3


def bus_bytes(kind: str, size: int, ranks: int) -> float:
    """Return what each rank must at least send (nccl-tests, doc/PERFORMANCE.md); 0 for one rank alone."""
    if ranks < 2:
        return 0.0
    if kind == "all_reduce":
        return bus_factor(ranks) * size
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks * size
    return float(size)


def link_bandwidth(fabric: FabricMeasurement, ranks: int) -> float | None:
    """Return the bus bandwidth in bytes/s of the all-reduce measured over as many ranks, or the next more."""
    measured = _nearest(fabric, ranks)
    rate = alpha_beta_model(measured.points).bytes_per_second if measured else None
    return None if measured is None or rate is None else bus_factor(measured.ranks) * rate


def expected_seconds(fabric: FabricMeasurement, ranks: int, size: int) -> float | None:
    """Return the time of an all-reduce of this size by the measured line of latency and bandwidth."""
    measured = _nearest(fabric, ranks)
    if measured is None or measured.ranks != ranks:
        return None
    fitted = alpha_beta_model(measured.points)
    return (
        None if fitted.bytes_per_second is None else fitted.latency_seconds + size / fitted.bytes_per_second
    )


def waited_for(ranks: Sequence[RankTime]) -> RankTime | None:
    """Return the rank that the others wait for most, where that is worth naming."""
    latest = max(ranks, key=lambda rank: rank.late, default=None)
    return latest if latest is not None and latest.late > LATE_SHARE * latest.step else None


def link_evidence(
    ranks: Sequence[RankTime], buckets: Sequence[CollectiveBucket], link: float | None
) -> Iterator[str]:
    """Yield what shows that communication is not hidden: the late rank, then the most exposed collectives."""
    if (late := waited_for(ranks)) is not None:
        yield _(
            "rank {rank} comes late: the others wait {time} ms a step for it",
            rank=f"{late.rank} ({late.node})" if late.node else late.rank,
            time=f"{late.late * 1e3:,.3f}",
        )
    for bucket in sorted(buckets, key=lambda bucket: -bucket.exposed)[:MOST_BUCKETS]:
        if not bucket.exposed:
            return
        size = "" if bucket.bytes is None else f" of {bucket.bytes / 1e6:,.1f} MB"
        text = _(
            "{bucket}: {exposed} of {time} ms exposed",
            bucket=f"{bucket.name}{size}",
            exposed=f"{bucket.exposed * 1e3:,.3f}",
            time=f"{bucket.seconds * 1e3:,.3f}",
        )
        if bucket.bandwidth is not None:
            text = _("{exposure}, {rate} GB/s", exposure=text, rate=f"{bucket.bandwidth / 1e9:,.3g}")
        if bucket.bandwidth and link:
            share = f"{bucket.bandwidth / link:.0%}"
            text = _("{exposure} = {share} of the fabric's", exposure=text, share=share)
        yield text


def _nearest(fabric: FabricMeasurement, ranks: int) -> AllReduce | None:
    larger = [reduced for reduced in fabric.all_reduces if reduced.ranks >= ranks and reduced.points]
    return min(larger, key=lambda reduced: reduced.ranks, default=None)


KINDS = {
    "all_reduce": re.compile(r"all_?reduce", re.IGNORECASE),
    "reduce_scatter": re.compile(r"reduce_?scatter", re.IGNORECASE),
    "all_gather": re.compile(r"all_?gather", re.IGNORECASE),
    "all_to_all": re.compile(r"all_?to_?all", re.IGNORECASE),
    "broadcast": re.compile(r"broadcast", re.IGNORECASE),
    "send_recv": re.compile(r"send|recv", re.IGNORECASE),
}
ELEMENT_BYTES = {
    **dict.fromkeys(("float", "int", "uint32"), 4),
    **dict.fromkeys(("double", "long", "long int", "complexfloat", "complex<float>"), 8),
    **dict.fromkeys(("half", "bfloat16", "short", "short int"), 2),
    **dict.fromkeys(
        ("byte", "char", "bool", "unsigned char", "signed char", "float8_e4m3fn", "float8_e5m2"), 1
    ),
}


@dataclass(frozen=True)
class Collective:
    """One call on one rank. `step` is the step's index, `count` which of its kind in the step."""

    kind: str
    step: int
    count: int
    start: int
    end: int
    bytes: int | None
    ranks: int | None

    @property
    def key(self) -> tuple[int, str, int]:
        return self.step, self.kind, self.count


def collectives(profile: Profile, classes: Sequence[str]) -> list[Collective]:
    """Return the collectives that begin inside a step, by start."""
    host, spans = profile.host, profile.spans
    rows: list[tuple[int, int, str, Operands | None]] = [
        (int(host.start[row]), int(host.end[row]), host.names[host.name[row]], host.operands.get(row))
        for row in collective_rows(host)
    ]
    # On a CPU the operator only hands the collective to its thread.
    if not rows:
        messages = _messages(profile)
        rows = [
            (
                int(spans.start[i]),
                int(spans.end[i]),
                spans.names[spans.name[i]],
                messages.get(int(spans.launch[i])),
            )
            for i, kernel_class in enumerate(classes)
            if kernel_class == COMMUNICATION
        ]
    starts = np.array([step.start for step in profile.steps], np.int64)
    seen: Counter[tuple[int, str]] = Counter()
    result = []
    for start, end, name, operands in sorted(rows, key=lambda row: row[:3]):
        step = int(np.searchsorted(starts, start, side="right")) - 1
        if step < 0 or start >= profile.steps[step].end:
            continue
        kind = kind_of(operands.values[0] if operands and operands.values and operands.values[0] else name)
        size = message_bytes(operands)
        group = operands.values[1] if operands and len(operands.values) == 2 else ""
        ranks = int(group) if group else None
        result.append(Collective(kind, step, seen[step, kind], start, end, size, ranks))
        seen[step, kind] += 1
    return result


def kind_of(name: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if pattern.search(name)), "collective")


def message_bytes(operands: Operands | None) -> int | None:
    """Return the larger of what is taken and given: the whole message in nccl-tests' sense."""
    if operands is None:
        return None
    sizes = []
    for shape, element in zip(operands.shapes, operands.types, strict=False):
        width = ELEMENT_BYTES.get(element.lower().removeprefix("c10::"))
        if shape is not None and width is not None:
            sizes.append(int(np.prod(shape, dtype=np.int64)) * width)
    return max(sizes, default=0) or None


def _messages(profile: Profile) -> dict[int, Operands]:
    """Return what `record_param_comms` around each launch says, by correlation id."""
    host = profile.host
    notes = [row for row in host.operands if host.names[host.name[row]] == "record_param_comms"]
    launches = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    starts, threads = host.start[launches], host.thread[launches]
    result: dict[int, Operands] = {}
    for row in sorted(notes):
        first, last = np.searchsorted(starts, [host.start[row], host.end[row]])
        own = launches[first:last][threads[first:last] == host.thread[row]]
        result.update({int(host.launch[call]): host.operands[row] for call in own})
    return result


Key = tuple[int, str, int]


def ranks(
    profiles: Sequence[Profile],
    classes: Sequence[Sequence[str]],
    details: Sequence[Profile | None] = (),
    nodes: Sequence[str | None] = (),
) -> tuple[tuple[RankTime, ...], tuple[CollectiveBucket, ...]]:
    """Return each rank in seconds a step, and each collective of the step.

    compute + exposed + idle is the step. `details` give the bytes where the profiles have none.
    """
    calls = [
        _with_messages(collectives(profile, names), details[index] if index < len(details) else None)
        for index, (profile, names) in enumerate(zip(profiles, classes, strict=True))
    ]
    exposed = [_busy(profile, names)[1] for profile, names in zip(profiles, classes, strict=True)]
    waits = late_nanoseconds(calls, exposed)
    rows = tuple(
        _rank(profile, names, late, nodes[index] if index < len(nodes) else None)
        for index, (profile, names, late) in enumerate(zip(profiles, classes, waits, strict=True))
    )
    world = max((profile.world_size for profile in profiles), default=1)
    return rows, _buckets(calls, exposed, max(world, len(profiles)))


def late_nanoseconds(calls: Sequence[Sequence[Collective]], exposed: Sequence[Intervals]) -> list[int]:
    """Return for each rank how long the others, on average, stood in a collective before it came.

    Waiting that the other rank's own computing hides does not count, and two collectives that wait at the
    same time count once.
    """
    tables = [{call.key: call for call in own} for own in calls]
    common = set.intersection(*(set(table) for table in tables)) if tables else set()
    keys = sorted(common)
    if len(tables) < 2 or not keys:
        return [0] * len(tables)
    offsets = clock_offsets(tables, keys)
    late = []
    for rank, table in enumerate(tables):
        waited = []
        for other, stood in enumerate(tables):
            if other != rank:
                shift = offsets[other] - offsets[rank]  # from the late rank's clock to the other's
                start = np.array([stood[key].start for key in keys], np.int64)
                came = np.array([table[key].start + shift for key in keys], np.int64)
                came = np.minimum(came, np.array([stood[key].end for key in keys], np.int64))
                waited.append(total_length(intersect(union(start, came), exposed[other])))
        late.append(round(statistics.mean(waited)))
    return late


def clock_offsets(tables: Sequence[dict[Key, Collective]], keys: Sequence[Key]) -> list[int]:
    """Return by how much each rank's clock is ahead of the first's, from the ends of their collectives."""
    first = tables[0]
    return [round(statistics.median(table[key].end - first[key].end for key in keys)) for table in tables]


def _busy(profile: Profile, classes: Sequence[str]) -> tuple[Intervals, Intervals, Intervals]:
    """Return the time of computing, of communication alone and of communication that computing hides."""
    if not profile.steps:
        return NO_INTERVALS, NO_INTERVALS, NO_INTERVALS
    spans, host = profile.spans, profile.host
    communicates = np.array([name == COMMUNICATION for name in classes], bool)
    rows = collective_rows(host)
    low, high = profile.steps[0].start, profile.steps[-1].end
    compute = clip(union(spans.start[~communicates], spans.end[~communicates]), low, high)
    start = np.concatenate((spans.start[communicates], host.start[rows]))
    end = np.concatenate((spans.end[communicates], host.end[rows]))
    transfer = clip(union(start, end), low, high)
    return compute, subtract(transfer, compute), intersect(transfer, compute)


def _rank(profile: Profile, classes: Sequence[str], late: int, node: str | None) -> RankTime:
    compute, exposed, hidden = (total_length(part) for part in _busy(profile, classes))
    steps = max(len(profile.steps), 1)
    total = profile.steps[-1].end - profile.steps[0].start if profile.steps else 0

    def seconds(nanoseconds: int) -> float:
        return nanoseconds / steps / 1e9

    return RankTime(
        rank=profile.rank,
        node=node,
        step=seconds(total),
        compute=seconds(compute),
        exposed=seconds(exposed),
        hidden=seconds(hidden),
        idle=seconds(total - compute - exposed),
        late=seconds(late),
    )


def _with_messages(calls: list[Collective], detail: Profile | None) -> list[Collective]:
    """Take kind and bytes from the detailed pass, call by call, where its steps have as many calls."""
    if detail is None or any(call.bytes is not None for call in calls):
        return calls
    known: dict[int, list[Collective]] = defaultdict(list)
    for call in collectives(detail, own_classes(detail)):
        known[call.step].append(call)
    own: dict[int, list[Collective]] = defaultdict(list)
    for call in calls:
        own[call.step].append(call)
    result = []
    for step, bare in own.items():
        alike = next((known[other] for other in (step, *known) if len(known[other]) == len(bare)), None)
        result += bare if alike is None else [_joined(*pair) for pair in zip(bare, alike, strict=True)]
    return result


def _joined(call: Collective, described: Collective) -> Collective:
    return replace(
        call,
        kind=described.kind,
        count=described.count,
        bytes=described.bytes,
        ranks=described.ranks,
    )


def _buckets(
    calls: Sequence[Sequence[Collective]],
    exposed: Sequence[Intervals],
    world: int,
) -> tuple[CollectiveBucket, ...]:
    """Return each collective as the rank saw it that came last: its time has no waiting in it.

    From one rank alone the time includes waiting for the others, and the bandwidth is a lower bound.
    """
    sizes = {(call.kind, call.count): call for own in calls for call in own if call.bytes is not None}
    shortest: dict[Key, tuple[int, int, int]] = {}
    for rank, own in enumerate(calls):
        for call in own:
            candidate = call.end - call.start, rank, call.start
            shortest[call.key] = min(candidate, shortest.get(call.key, candidate))
    times: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    order: dict[tuple[str, int], int] = {}
    for (_step, kind, count), (duration, rank, start) in sorted(
        shortest.items(), key=lambda item: item[1][2]
    ):
        alone = total_length(clip(exposed[rank], start, start + duration))
        times[kind, count].append((duration, alone))
        order.setdefault((kind, count), len(order))
    buckets = []
    for place in sorted(times, key=lambda key: order[key]):
        kind, count = place
        seconds = statistics.mean(duration for duration, _alone in times[place]) / 1e9
        exposed_seconds = statistics.mean(part for _duration, part in times[place]) / 1e9
        described = sizes.get(place)
        size = described.bytes if described else None
        group = described.ranks if described else None
        moved = bus_bytes(kind, size, group or world) if size else None
        rate = moved / seconds if moved and seconds else None
        buckets.append(CollectiveBucket(f"{kind} #{count + 1}", size, seconds, exposed_seconds, rate))
    return tuple(buckets)
