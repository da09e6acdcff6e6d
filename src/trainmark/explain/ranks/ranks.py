"""Several ranks side by side: what each computes, what it waits, and for whom.

All ranks leave a collective together, so its ends tell how far the clocks of two hosts are apart. The rank
that comes last makes the others wait: from their own start until its start they do nothing for the step.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trainmark.explain.attribute import own_classes
from trainmark.explain.classes import COMMUNICATION
from trainmark.explain.explanation import Bucket, RankTime
from trainmark.explain.intervals import EMPTY, Intervals, clip, intersect, length, subtract, union
from trainmark.explain.profile.collective import collective_rows
from trainmark.explain.profile.model import Profile
from trainmark.explain.ranks.bandwidth import bus_bytes
from trainmark.explain.ranks.collectives import Collective, collectives

Key = tuple[int, str, int]


def ranks(
    profiles: Sequence[Profile],
    classes: Sequence[Sequence[str]],
    details: Sequence[Profile | None] = (),
    nodes: Sequence[str | None] = (),
) -> tuple[tuple[RankTime, ...], tuple[Bucket, ...]]:
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
                waited.append(length(intersect(union(start, came), exposed[other])))
        late.append(round(statistics.mean(waited)))
    return late


def clock_offsets(tables: Sequence[dict[Key, Collective]], keys: Sequence[Key]) -> list[int]:
    """Return by how much each rank's clock is ahead of the first's, from the ends of their collectives."""
    first = tables[0]
    return [round(statistics.median(table[key].end - first[key].end for key in keys)) for table in tables]


def _busy(profile: Profile, classes: Sequence[str]) -> tuple[Intervals, Intervals, Intervals]:
    """Return the time of computing, of communication alone and of communication that computing hides."""
    if not profile.steps:
        return EMPTY, EMPTY, EMPTY
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
    compute, exposed, hidden = (length(part) for part in _busy(profile, classes))
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
) -> tuple[Bucket, ...]:
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
    for (_, kind, count), (duration, rank, start) in sorted(shortest.items(), key=lambda item: item[1][2]):
        alone = length(clip(exposed[rank], start, start + duration))
        times[kind, count].append((duration, alone))
        order.setdefault((kind, count), len(order))
    buckets = []
    for place in sorted(times, key=lambda key: order[key]):
        kind, count = place
        seconds = statistics.mean(duration for duration, _ in times[place]) / 1e9
        exposed_seconds = statistics.mean(part for _, part in times[place]) / 1e9
        described = sizes.get(place)
        size = described.bytes if described else None
        group = described.ranks if described else None
        moved = bus_bytes(kind, size, group or world) if size else None
        rate = moved / seconds if moved and seconds else None
        buckets.append(Bucket(f"{kind} #{count + 1}", size, seconds, exposed_seconds, rate))
    return tuple(buckets)
