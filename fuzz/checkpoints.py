"""Kills, disk errors and damaged files aimed at checkpoints; prints how many, and which lost a training.

    python fuzz/checkpoints.py --count 1000 --seed 0

A miniature training saves its places in order, two of them on one step, and writes down each save that
returned. Its process ends by SIGKILL at one call to the file system; a restore in another process must then
give the last place that was saved, or the one that was being saved. The parts:

    calls          kills at every call in turn, with one rank and with two
    system-calls   kills at every system call in turn, where strace may attach
    errors         lets every call in turn fail with ENOSPC and with EIO
    random         kills, restores and goes on at random, with one to three ranks
    damage         flips bits of, cuts, empties and removes files of the newest checkpoint
"""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "workloads")]

import tiny_training  # noqa: E402

from trainmark.workloads.common.checkpoint import TrainingPosition  # noqa: E402

# The fourth is the evaluation's checkpoint on the step of the third, as the last is on the one before it.
PLACES = [
    TrainingPosition(2, 0, 2),
    TrainingPosition(4, 0, 4),
    TrainingPosition(6, 0, 6),
    TrainingPosition(6, 1, 0),
    TrainingPosition(8, 1, 2),
    TrainingPosition(12, 1, 6),
    TrainingPosition(12, 2, 0),
]
WATCHED = (
    "mkdir",
    "rename",
    "replace",
    "open",
    "fsync",
    "close",
    "unlink",
    "rmdir",
    "listdir",
    "scandir",
    "stat",
    "lstat",
)
PARTS = ("calls", "system-calls", "errors", "random", "damage")

Blow = Callable[[], None]


class CallCounter:
    """Counts calls to the file system, and does something at the one with the number `at`."""

    def __init__(self, at: int, blow: Blow) -> None:
        self.at, self.blow, self.calls = at, blow, 0

    def count(self) -> None:
        self.calls += 1
        if self.calls == self.at:
            self.blow()

    def install(self) -> None:
        for name in WATCHED:
            setattr(os, name, self._counted(getattr(os, name)))
        plain_open, counter = builtins.open, self

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                half = bytes(data)[: len(data) // 2]
                io.FileIO.write(self, half)  # a kill or a full disk in the middle of a write
                counter.count()
                return len(half) + io.FileIO.write(self, bytes(data)[len(half) :])

            def close(self) -> None:
                if not self.closed:
                    counter.count()
                super().close()

        def counted_open(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            counter.count()
            if mode == "wb":
                return io.BufferedWriter(File(path, "w"))
            if mode == "w":
                return io.TextIOWrapper(io.BufferedWriter(File(path, "w")))
            return plain_open(path, mode, *args, **options)

        builtins.open = counted_open

    def _counted(self, function: Any) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            self.count()
            return function(*args, **options)

        return called


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[int], Any]) -> tuple[int, str]:
    """Fork, let the child write lines to a descriptor, and return its wait status and what it wrote."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        os.close(reader)
        code = 1
        try:
            work(writer)
            code = 0
        except BaseException as error:  # noqa: BLE001 - a find, told to the parent
            os.write(writer, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    return os.waitpid(child, 0)[1], text


def save_from(folder: Path, ranks: int, writer: int, first: int) -> None:
    """Save the places in order on all ranks; rank 0 writes down the number of each save that returned."""

    def work(checkpoints: Any) -> None:
        for number in range(first, len(PLACES)):
            checkpoints.training.value = number + 1
            os_write(writer, f"begin {number}\n", checkpoints.rank)
            if checkpoints.save(PLACES[number]) is not None:
                os_write(writer, f"saved {number}\n", checkpoints.rank)

    tiny_training.on_ranks(folder, ranks, work)


def os_write(writer: int, line: str, rank: int) -> None:
    if rank == 0:
        os.write(writer, line.encode())


def numbers(text: str, word: str) -> list[int]:
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith(word)]


def restored(folder: Path, ranks: int) -> tuple[int | None, str]:
    """Restore in a process of its own; return the place's number, -1 for the start, None for a failure."""

    def work(writer: int) -> None:
        def restore(checkpoints: Any) -> int:
            place = checkpoints.restore()
            number = PLACES.index(place) if place in PLACES else -1
            assert checkpoints.training.value == number + 1, "the state is not that of the place"
            return number

        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        answers = set(tiny_training.on_ranks(folder, ranks, restore))
        assert len(answers) == 1, f"ranks restored different places: {answers}"
        os.write(writer, f"restored {answers.pop()}\n".encode())

    status, text = in_child(work)
    place_numbers = numbers(text, "restored")
    return (place_numbers[0] if status == 0 and place_numbers else None), text.strip()


class Attack:
    """The kills of one part, and what they found."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kills, self.finds = folder, 0, 0

    def fresh(self) -> Path:
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.folder / "checkpoints"

    def judge(self, what: str, number: int | None, text: str, saved: int, begun: int) -> None:
        self.kills += 1
        if number is None or not saved <= number <= begun:
            self.finds += 1
            print(f"FIND {what}: saved {saved}, began {begun}, restored {number} {text}", flush=True)

    def after(self, what: str, folder: Path, ranks: int, text: str, before: int = -1) -> int:
        """Restore after a kill and judge; return the place that the next process goes on from."""
        saved, begun = max([before, *numbers(text, "saved")]), max([before, *numbers(text, "begin")])
        number, restore_text = restored(folder, ranks)
        self.judge(what, number, restore_text, saved, begun)
        return saved if number is None else number


def calls(attack: Attack, ranks: int = 1) -> None:
    """SIGKILL at every call to the file system in turn."""
    at = 1
    while True:
        folder = attack.fresh()

        def work(writer: int, at: int = at, folder: Path = folder) -> None:
            CallCounter(at, killed).install()
            save_from(folder, ranks, writer, 0)

        status, text = in_child(work)
        if not os.WIFSIGNALED(status):
            return
        attack.after(f"killed at call {at}, {ranks} ranks", folder, ranks, text)
        at += 1


def system_calls(attack: Attack) -> None:
    """SIGKILL at every system call in turn, by strace, which counts each kind on its own."""
    log = attack.folder.parent / "system-calls.log"
    if shutil.which("strace") is None or _traced(attack.fresh(), "-o", str(log)) is None:
        print("system-calls: left out, strace is missing or may not attach")
        return
    kinds = Counter(line.partition("(")[0] for line in log.read_text().splitlines() if "(" in line)
    for kind, times in sorted(kinds.items()):
        for at in range(1, times + 1):
            folder = attack.fresh()
            inject = f"inject={kind}:signal=SIGKILL:when={at}"
            traced = _traced(folder, "-o", os.devnull, "-e", inject)
            if traced is not None:
                attack.after(f"killed at {kind} {at}", folder, 1, traced)


def _traced(folder: Path, *options: str) -> str | None:
    """Let a child save under strace; return what it wrote down, None where strace could not attach."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        save_from(folder, 1, writer, 0)
        os._exit(0)
    os.close(writer)
    os.waitpid(child, os.WUNTRACED)
    tracer = subprocess.Popen(["strace", "-qq", *options, "-p", str(child)], stderr=subprocess.DEVNULL)
    attached = True
    while "TracerPid:\t0" in Path(f"/proc/{child}/status").read_text():
        if tracer.poll() is not None:
            os.kill(child, signal.SIGKILL)
            attached = False
            break
        time.sleep(0.001)
    os.kill(child, signal.SIGCONT)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    tracer.wait()
    return text if attached else None


def errors(attack: Attack, *kinds: int) -> None:
    """Fail with each kind of error at every call in turn; later calls succeed."""
    for number in kinds:

        def fail(number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        at, struck = 1, True
        while struck:
            folder, counter = attack.fresh(), CallCounter(at, fail)

            def work(writer: int, counter: CallCounter = counter, folder: Path = folder) -> None:
                counter.install()
                save_from(folder, 1, writer, 0)
                os.write(writer, f"calls {counter.calls}\n".encode())

            status, text = in_child(work)
            attack.after(f"{errno.errorcode[number]} at call {at}", folder, 1, text)
            if status:
                attack.finds += 1
                print(f"FIND {errno.errorcode[number]} at call {at}: save raised {text.splitlines()[-1]}")
            struck = status != 0 or numbers(text, "calls")[0] >= at
            at += 1


def at_random(attack: Attack, count: int, chance: random.Random) -> None:
    """Kill after a random time or at a random call, restore, go on, and kill again."""
    while attack.kills < count:
        folder, ranks, went_on_from = attack.fresh(), chance.choice((1, 1, 2, 3)), -1
        for _ in range(chance.randint(1, 4)):
            at = chance.randint(1, 200 * ranks)

            def work(writer: int, at: int = at, first: int = went_on_from + 1, **fixed: Any) -> None:
                CallCounter(at, killed).install()
                tiny_training.on_ranks(
                    fixed["folder"], fixed["ranks"], lambda checkpoints: checkpoints.restore()
                )
                save_from(fixed["folder"], fixed["ranks"], writer, first)

            _, text = in_child(
                lambda writer, work=work, folder=folder, ranks=ranks: work(writer, folder=folder, ranks=ranks)
            )
            went_on_from = attack.after(
                f"random kill at call {at}, {ranks} ranks", folder, ranks, text, went_on_from
            )


def damage(attack: Attack, count: int, chance: random.Random) -> None:
    """Damage a file of the newest checkpoint: it is restored where nothing was lost, else the one before."""
    for _ in range(count):
        folder, ranks = attack.fresh(), chance.choice((1, 2))
        in_child(lambda writer, folder=folder, ranks=ranks: save_from(folder, ranks, writer, 0))
        newest = max(folder.glob("step-*"))
        file = chance.choice(sorted(newest.iterdir()))
        data, how = (
            bytearray(file.read_bytes()),
            chance.choice(("flip", "cut", "empty", "remove", "remove all")),
        )
        if how == "flip":
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            file.write_bytes(data)
        elif how == "cut":
            file.write_bytes(data[: chance.randrange(len(data))])
        elif how == "empty":
            file.write_bytes(b"")
        elif how == "remove":
            file.unlink()
        else:
            shutil.rmtree(newest)
            newest.mkdir()
        number, text = restored(folder, ranks)
        # Kept are the later checkpoint of the last step, and the one of the step before.
        attack.judge(f"{how} {file.name}", number, text, len(PLACES) - 3, len(PLACES) - 1)


def parts(asked: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Attack]]:
    chance, count = random.Random(asked.seed), asked.count
    for name in asked.only or PARTS:
        attack = Attack(folder / name)
        if name == "calls":
            calls(attack)
            if not asked.quick:
                calls(attack, ranks=2)
        elif name == "system-calls":
            system_calls(attack)
        elif name == "errors":
            errors(attack, errno.ENOSPC, *([] if asked.quick else [errno.EIO]))
        elif name == "random":
            at_random(attack, count, chance)
        else:
            damage(attack, count, chance)
        yield name, attack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="random kills, and as many damaged files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; all of them without this")
    parser.add_argument("--quick", action="store_true", help="fewer places, one rank, one kind of error")
    asked = parser.parse_args()
    if asked.quick:
        del PLACES[4:], PLACES[:1]
    kills = finds = 0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a kill is the same, and fsync is free
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for name, attack in parts(asked, Path(folder)):
            print(f"{name}: {attack.kills} kills, {attack.finds} finds", flush=True)
            kills, finds = kills + attack.kills, finds + attack.finds
    print(f"{kills} kills, {finds} finds")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
