"""A document of trainings to a target: invented curves of a believable shape, not measurements."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from sample_documents import GPU, case_name, h200, result, trial_lines

from trainmark.measure.figure import Epoch, Evaluation, Finish, Ratio, Result
from trainmark.measure.finish import finish_result, repeated_finish_doubts
from trainmark.measure.key import Key
from trainmark.store.report import RunReport
from trainmark.store.series import Curve
from trainmark.workloads import registry

METRICS = registry.find("resnet50").workload.metrics
EPOCHS, STEPS = 30, 195
TARGET = 0.8


def seed_of(devices: int, seed: int, target: float = TARGET) -> tuple[Finish, Curve, Key]:
    """A training of 30 epochs at most on as many devices."""
    chance = random.Random(f"{devices}-{seed}")
    key = replace(
        GPU, data="images", loader="dali-gpu", dataset="made-100", recipe="ngc-90",
        target=f"top1={target:g}", devices_per_node=devices, device="NVIDIA H200",
    )  # fmt: skip
    train, evaluate = 17.0 / devices, 1.4 / devices + 0.4
    now, evaluations, epochs = 9.0, [], []
    for epoch in range(EPOCHS):
        begin = now
        now += train * (1.6 if epoch == 0 else 1.0)
        epochs.append(Epoch(epoch, STEPS, begin, now, now - begin, 50_000))
        top1 = 0.86 * (1 - math.exp(-(epoch + 1) / (9 + devices / 3))) + chance.gauss(0, 0.008)
        top5 = min(0.99, top1 + 0.25 * (1 - top1))
        scores = (("top1", top1), ("top5", top5))
        evaluations.append(Evaluation(epoch, (epoch + 1) * STEPS, now, now + evaluate, scores, 5000))
        now += evaluate
        if top1 >= target:
            break
    crossing = evaluations[-1] if evaluations[-1].scores[0][1] >= target else None
    best = max(evaluations, key=lambda evaluation: evaluation.scores)
    finish = Finish(
        target=f"top1={target:g}",
        reached=crossing is not None,
        time2train=crossing and crossing.end,
        airank_seconds=crossing and crossing.end + 14,
        epochs_to_target=crossing and crossing.epoch + 1,
        best=best.scores,
        best_epoch=best.epoch + 1,
        train_rate=50_000 / train,
        first_epoch_rate=50_000 / train / 1.6,
        whole_rate=50_000 * len(epochs) / now,
        airank_rate=50_000 * (len(epochs) - 1) / (now - epochs[0].end),
        seconds=now,
        startup_seconds=14,
        evaluation_seconds=sum(e.end - e.begin for e in evaluations),
        checkpoint_seconds=0,
        checkpoints=0,
        resumed=0,
        lost_seconds=0,
        metrics=METRICS,
        epochs=tuple(epochs),
        evaluations=tuple(evaluations),
    )
    places = range(10, STEPS * len(epochs), 20)
    losses = tuple(0.9 + 4.2 * math.exp(-place / 1500) + chance.gauss(0, 0.08) for place in places)
    seconds = tuple(9 + place * now / (STEPS * len(epochs)) for place in places)
    curve = Curve(
        case_name(key),
        seed,
        seed,
        target,
        tuple(places),
        seconds,
        losses,
        tuple(evaluations),
        crossing,
        METRICS,
    )
    return finish, curve, key


def trained(target: float = TARGET) -> RunReport:
    """One device and four, five seeds each, and the same case on synthetic data."""
    seeds = {devices: [seed_of(devices, seed, target) for seed in range(1, 6)] for devices in (1, 4)}
    one = [finish for finish, _, _ in seeds[1]]
    results: list[Result] = []
    for devices, trials in seeds.items():
        finishes = one if devices == 1 else [finish for finish, _, _ in trials]
        made = result(trials[0][2], 2880.0 * devices * (1 if devices == 1 else 0.94), 2880.0, 5)
        results.append(
            replace(
                made,
                finish=finish_result(finishes, one),
                doubts=tuple(repeated_finish_doubts(finishes)),
                of_synthetic=Ratio(0.966, None) if devices == 1 else None,
            )
        )
    plain = replace(GPU, device="NVIDIA H200")
    results.append(result(plain, 2980.0, 2980.0, 5))
    return replace(
        h200(),
        about="How long does it take, and how much does the data cost?",
        results=tuple(results),
        trials=trial_lines(tuple(results)),
        skipped=(),
        traces=(),
        samples=(),
        curves=tuple(curve for trials in seeds.values() for _, curve, _ in trials),
    )
