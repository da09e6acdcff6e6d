"""Logs made to give a chosen speed, in the line formats that the rules look for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2020, 9, 15, 14, 29, 13, 473765)
Maker = Callable[[float, int, int], str]


def place(folder: Path, case: str, name: str, text: str) -> Path:
    path = folder / case / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def matrix(folder: Path, speeds: dict[str, list[float]], make: Maker, name: str = "rn50_b128_fp32") -> Path:
    """One log for each speed of each case, numbered from 1."""
    batch = int(name.split("_")[1][1:])
    for case, values in speeds.items():
        nodes, devices = (int(part) for part in case.rstrip("g").split("n"))
        for repeat, speed in enumerate(values, 1):
            text = make(speed, batch * nodes * devices, nodes * devices)
            place(folder, case, f"{name}_{repeat}.log", text)
    return folder


def moments(step_seconds: float, steps: int, start: datetime = START) -> list[datetime]:
    """The end of each step, each rounded to the microsecond on its own, so that no error adds up."""
    return [start + timedelta(microseconds=round(1e6 * step_seconds * step)) for step in range(1, steps + 1)]


def pytorch(speed: float, global_batch: int, ranks: int, steps: int = 125) -> str:
    """DLLogger's iterations, the first one slow."""
    times = moments(global_batch / speed, steps)
    times[0] -= timedelta(seconds=20)
    return "".join(
        f"DLL {time:%Y-%m-%d %H:%M:%S.%f} - Epoch: 0 Iteration: {step}  train.loss : 6.9  "
        f"train.total_ips : {speed:.2f} img/s\n"
        for step, time in enumerate(times, 1)
    )


def mindspore(speed: float, global_batch: int, ranks: int, epochs: int = 20, sink: int = 10) -> str:
    """Sink epochs of ten steps, the first with the compilation in it; all losses, then all times."""
    sink_ms = 1000 * sink * global_batch / speed
    exact = [0.0, *itertools.accumulate([sink_ms] * (epochs * ranks))]
    printed = [round(after, 3) - round(before, 3) for before, after in itertools.pairwise(exact)]
    lines = []
    for epoch in range(1, epochs + 1):
        lines += [f"epoch: {epoch} step: {sink}, loss is 6.9\n"] * ranks
        slow = 90_000 if epoch == 1 else 0
        for value in printed[(epoch - 1) * ranks : epoch * ranks]:
            lines.append(f"epoch time: {value + slow:.3f} ms, per step time: {value / sink:.3f} ms\n")
    return "".join(lines)


def examples(times: Iterable[tuple[int, float]]) -> str:
    """torch's examples/imagenet: iteration and step time."""
    return "".join(
        f"Epoch: [0][{step:3d}/400]\tTime {seconds:6.3f} ( 0.500)\tData  0.001 ( 0.001)\tLoss 6.9 (6.9)\n"
        for step, seconds in times
    )


def tensorflow(times: list[datetime], rates: list[float]) -> str:
    return "".join(
        f"DLL {time:%Y-%m-%d %H:%M:%S.%f} - Iteration: {number}  imgs_per_sec : {rate:.6f}  loss : 7.0 \n"
        for number, (time, rate) in enumerate(zip(times, rates, strict=True), 21)
    )


def tensorflow_bert(times: dict[int, datetime], rate: float) -> str:
    return "".join(
        f"DLL {time:%Y-%m-%d %H:%M:%S.%f} - Iteration: {step}  throughput_train : {rate:.3f} seq/s loss : 9\n"
        for step, time in times.items()
    )


def time_history(times: Iterable[datetime], rate: float) -> str:
    return "".join(
        f"I0905 {time:%H:%M:%S.%f} 1400 keras_utils.py:145] TimeHistory: 40.1 seconds, {rate:.2f} "
        f"examples/second between steps {step - 100} and {step}\n"
        for step, time in zip(itertools.count(100, 100), times, strict=False)
    )


def mxnet(rates: list[list[float]], times: list[datetime]) -> str:
    """Every rank prints every step."""
    return "".join(
        f"[1,{rank}]<stderr>:{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}:INFO: Epoch[0] Batch "
        f"[{step}-{step}]\tSpeed: {rate:.4f} samples/sec\tLR: 0.1\n"
        for step, (row, time) in enumerate(zip(rates, times, strict=True))
        for rank, rate in enumerate(row)
    )


def paddle(times: list[datetime], seconds: list[float]) -> str:
    return "".join(
        f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03d}-INFO: [Pass 0, train batch {step}] "
        f"\tloss 6.9, lr 0.1, elapse {value:.4f} sec\n"
        for step, (time, value) in enumerate(zip(times, seconds, strict=True))
    )


def oneflow(rates: Iterable[float], header: tuple[int, int, int] | None = None, unix: bool = False) -> str:
    """`header` is nodes, devices, batch; a line every 20 steps."""
    keys = ("num_nodes", "gpu_num_per_node", "batch_size_per_device")
    lines = [f"{key} = {value}\n" for key, value in zip(keys, header or (), strict=False)]
    return "".join([*lines, *_oneflow_steps(rates, header, unix)])


def _oneflow_steps(rates: Iterable[float], header: tuple[int, int, int] | None, unix: bool) -> Iterator[str]:
    clock = 1_597_933_942.0
    for number, rate in enumerate(rates, 1):
        line = f"train: epoch 0, iter {20 * number}, loss: 6.9, top_1: 0.0, top_k: 0.0, samples/s: {rate:.3f}"
        if unix and header is not None:
            clock += 20 * header[0] * header[1] * header[2] / rate
            line += f" {clock:.7f}"
        yield line + "\n"
