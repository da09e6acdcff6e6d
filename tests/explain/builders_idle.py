"""A host thread and a device queue in miniature: programs written against them become profiles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainmark.explain.breakdown import Gap
from trainmark.explain.profile import Collector, DeviceKind, HostKind, Profile, ProfiledStep

MICROSECOND = 1_000
MILLISECOND = 1_000_000
LATENCY = 4 * MICROSECOND


class Machine:
    """Runs one thread against one stream; `bare` leaves out operators, annotations and Python."""

    def __init__(self, bare: bool = False, start: int = 0) -> None:
        self.now = start
        self.device_free = start
        self._bare = bare
        self._collector = Collector()
        self._correlation = 0
        self._steps: list[ProfiledStep] = []

    @contextmanager
    def span(self, name: str, kind: HostKind) -> Iterator[None]:
        start = self.now
        self.now += 100  # entering takes time, so that no two rows are the same interval
        yield
        if not self._bare:
            self._collector.host(name, start, self.now, kind=kind)

    def python(self, name: str):
        return self.span(name, HostKind.PYTHON)

    def annotation(self, name: str):
        return self.span(name, HostKind.ANNOTATION)

    def operator(self, name: str):
        return self.span(name, HostKind.OPERATOR)

    def work(self, duration: int) -> None:
        """Let the host compute or sleep."""
        self.now += duration

    def launch(
        self,
        name: str,
        duration: int,
        cost: int = 5 * MICROSECOND,
        kind: DeviceKind = DeviceKind.KERNEL,
        call: str = "cudaLaunchKernel",
    ) -> None:
        self._correlation += 1
        begin = max(self.device_free, self.now + LATENCY)
        self._collector.device(name, begin, begin + duration, launch=self._correlation, kind=kind)
        self._collector.host(call, self.now, self.now + cost, kind=HostKind.RUNTIME, launch=self._correlation)
        self.device_free = begin + duration
        self.now += cost

    def graph(self, names: list[str], duration: int, between: int, cost: int = 50 * MICROSECOND) -> None:
        self._correlation += 1
        begin = max(self.device_free, self.now + cost)
        for name in names:
            self._collector.device(name, begin, begin + duration, launch=self._correlation, in_graph=True)
            begin += duration + between
        self._collector.host(
            "cudaGraphLaunch", self.now, self.now + cost, kind=HostKind.RUNTIME, launch=self._correlation
        )
        self.device_free = begin - between
        self.now += cost

    def synchronise(self, call: str = "cudaStreamSynchronize") -> None:
        """Wait for the device; the call returns a little after it."""
        self._correlation += 1
        end = max(self.now + 2 * MICROSECOND, self.device_free + 3 * MICROSECOND)
        self._collector.host(call, self.now, end, kind=HostKind.RUNTIME, launch=self._correlation)
        self.now = end

    def item(self) -> None:
        builtin = self.python("<built-in method item of Tensor object at 0x7f00>")
        with builtin, self.operator("aten::item"), self.operator("aten::_local_scalar_dense"):
            copy = "Memcpy DtoH (Device -> Pageable)"
            self.launch(copy, MICROSECOND, kind=DeviceKind.COPY, call="cudaMemcpyAsync")
            self.synchronise()

    @contextmanager
    def step(self) -> Iterator[None]:
        """A step on the device: from the end of what was launched before to the end of what is inside."""
        start = self.device_free
        with self.annotation(f"trainmark_step#{len(self._steps)}"):
            yield
        self._steps.append(ProfiledStep(len(self._steps), start, self.device_free))

    def profile(self, rank: int = 0, world_size: int = 1) -> Profile:
        return Profile(
            "cuda",
            self._collector.device_spans(),
            self._collector.host_spans(),
            tuple(self._steps),
            rank,
            world_size,
        )


def gaps(profile: Profile) -> tuple[Gap, ...]:
    """The stretches of each step in which no span runs."""
    result = []
    for index, step in enumerate(profile.steps):
        reach = step.start
        for start, end in zip(profile.spans.start.tolist(), profile.spans.end.tolist(), strict=True):
            if end <= step.start or start >= step.end:
                continue
            if start > reach:
                result.append(Gap(reach, start, index))
            reach = max(reach, end)
        if reach < step.end:
            result.append(Gap(reach, step.end, index))
    return tuple(result)
