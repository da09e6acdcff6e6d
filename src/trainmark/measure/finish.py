"""The finish line of one trial: when it was crossed, by which clock, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from trainmark.measure.figure import Epoch, Evaluation, Finish
from trainmark.measure.rank_events import RESUME
from trainmark.measure.trace import Moment, Trace


def finish_of(trace: Trace) -> Finish | None:
    """None for a trial that was not trained by epochs; what a stream cut short does not tell is None."""
    target = trace.facts.get("target")
    if target is None and "epochs" not in trace.facts:
        return None
    wanted = target if isinstance(target, Mapping) else {}
    start = trace.start if trace.first_start is None else trace.first_start
    evaluations, epochs = _evaluations(trace.marks, start), _epochs(trace, start)
    crossing = next((found for found in evaluations if wanted and _crosses(found, wanted)), None)
    ended = len(trace.end_facts) == trace.world_size
    startup = None if trace.process_start is None else start - trace.process_start
    best = max(evaluations, key=lambda found: _known(found.top1), default=None)
    last = max([float(trace.ends[-1]), *(mark.at for mark in trace.marks)]) - start
    resumes = [mark for mark in trace.marks if mark.kind == RESUME and mark.rank == 0]
    checkpoints = [mark for mark in trace.marks if mark.kind == "checkpoint" and mark.rank == 0]
    return Finish(
        target=", ".join(f"{name}={value:g}" for name, value in wanted.items()) or None,
        reached=True if crossing else (False if ended and wanted else None),
        time2train=crossing.end if crossing else None,
        airank_seconds=crossing.end + startup if crossing and startup is not None else None,
        epochs_to_target=crossing.epoch + 1 if crossing else None,
        best_top1=best.top1 if best else None,
        best_top5=best.top5 if best else None,
        best_epoch=best.epoch + 1 if best else None,
        train_rate=_rate(epochs[1:]),
        first_epoch_rate=_rate(epochs[:1]),
        whole_rate=float(trace.samples.sum()) / last if last > 0 else None,
        airank_rate=_airank_rate(epochs, last),
        seconds=last,
        startup_seconds=startup,
        evaluation_seconds=sum(found.end - found.begin for found in evaluations),
        checkpoint_seconds=sum(_number(mark.facts.get("seconds")) for mark in checkpoints),
        checkpoints=sum(mark.facts.get("failed") is None for mark in checkpoints),
        resumed=len(resumes),
        lost_seconds=sum(_lost(trace, mark, start) for mark in resumes),
        training_images=_count(trace.facts.get("training_images")),
        validation_images=_count(trace.facts.get("validation_images")),
        epochs=epochs,
        evaluations=evaluations,
    )


def _evaluations(marks: Iterable[Moment], start: float) -> tuple[Evaluation, ...]:
    """From the first rank that begins one to the last that ends it; of repeated ones the last counts."""
    begun, ended = _framed(marks, "eval", repeated=True)
    found = []
    for epoch, ends in sorted(ended.items()):
        last = max(ends, key=lambda mark: mark.at)
        evaluation = Evaluation(
            epoch=epoch,
            step=last.step,
            begin=min((mark.at for mark in begun.get(epoch, ())), default=last.at) - start,
            end=last.at - start,
            top1=_share(last.facts.get("top1")),
            top5=_share(last.facts.get("top5")),
            images=_count(last.facts.get("images")),
        )
        found.append(evaluation)
    return tuple(found)


def _epochs(trace: Trace, start: float) -> tuple[Epoch, ...]:
    """From the last rank's begin to the last rank's end; one that a kill cut began where it began first."""
    begun, ended = _framed(trace.marks, "epoch", repeated=False)
    return tuple(
        _epoch(trace, start, epoch, begun[epoch], ended[epoch])
        for epoch in sorted(begun.keys() & ended.keys())
    )


def _framed(
    marks: Iterable[Moment], kind: str, repeated: bool
) -> tuple[dict[int, list[Moment]], dict[int, list[Moment]]]:
    """Of each epoch the begins and the ends, one a rank: its last end, and its first or last begin."""
    found: dict[str, dict[tuple[int, int], Moment]] = {"begin": {}, "end": {}}
    for mark in marks:
        epoch, state = mark.facts.get("epoch"), mark.facts.get("state")
        if mark.kind == kind and isinstance(epoch, int) and state in found:
            place = (epoch, mark.rank)
            if state == "end" or repeated or place not in found[state]:
                found[state][place] = mark
    begun: dict[int, list[Moment]] = {}
    ended: dict[int, list[Moment]] = {}
    for state, by_epoch in (("begin", begun), ("end", ended)):
        for (epoch, _), mark in found[state].items():
            by_epoch.setdefault(epoch, []).append(mark)
    return begun, ended


def _epoch(trace: Trace, start: float, epoch: int, begun: Sequence[Moment], ended: Sequence[Moment]) -> Epoch:
    begin, end = max(mark.at for mark in begun), max(mark.at for mark in ended)
    bounds = [begun[0].step, ended[0].step]
    first, stop = bounds if trace.numbers is None else np.searchsorted(trace.numbers, bounds)
    stood_still = [mark.at for mark in trace.marks if mark.ends_a_pause and mark.step == ended[0].step]
    # A device's clock may be some microseconds ahead of the host's, which took the mark after the last step.
    last_step = [min(float(at), end) for at in trace.ends[max(first, stop - 1) : stop]]
    trained = [at for at in (begin, *stood_still, *last_step) if at <= end]
    return Epoch(
        epoch=epoch,
        steps=int(stop - first),
        begin=begin - start,
        end=end - start,
        seconds=float(trace.step_seconds[first:stop].sum()) + end - max(trained, default=end),
        images=float(trace.samples[first:stop].sum()),
    )


def _crosses(found: Evaluation, target: Mapping[str, Any]) -> bool:
    told = {"top1": found.top1, "top5": found.top5}
    return all(_known(told.get(name)) >= value for name, value in target.items())


def _rate(epochs: Sequence[Epoch]) -> float | None:
    seconds = sum(epoch.seconds for epoch in epochs)
    return sum(epoch.images for epoch in epochs) / seconds if seconds > 0 else None


def _airank_rate(epochs: Sequence[Epoch], last: float) -> float | None:
    """avg_ips of AI-Rank: the epochs after the warm-up, here the first, over the time up to the end."""
    if len(epochs) < 2 or last <= epochs[0].end:
        return None
    return sum(epoch.images for epoch in epochs[1:]) / (last - epochs[0].end)


def _lost(trace: Trace, resume: Moment, start: float) -> float:
    numbers = np.arange(len(trace.ends)) if trace.numbers is None else trace.numbers
    done = int(np.searchsorted(numbers, resume.step))
    kept = [mark.at for mark in trace.marks if mark.step <= resume.step and mark.at < resume.at]
    return resume.at - max([float(trace.ends[done - 1]) if done else start, *kept])


def _known(value: float | None) -> float:
    return float("-inf") if value is None else value


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: Any) -> float:
    return _share(value) or 0.0


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
