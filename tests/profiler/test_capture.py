"""The sequence of a capture's steps, and what becomes of it when a profiler fails."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest

from trainmark.inside.profiler import capture, phases

UNPROFILED = 2 + 5
PASS = 2 + 1 + 2


class LoggingBackend:
    """A profiler of two passes that writes down what is asked of it; the call `fails` raises once."""

    def __init__(self, fails=None):
        self.calls, self.fails = [], fails

    def passes(self):
        return "timing", "detail"

    def call(self, name, *arguments):
        self.calls.append(" ".join([name, *arguments]))
        if self.calls[-1] == self.fails:
            self.fails = None
            raise RuntimeError("CUPTI is\nbusy")

    def prepare(self, name):
        self.call("prepare", name)

    def start(self, name):
        self.call("start", name)

    def stop(self, name, path):
        with gzip.open(path, "wb") as file:
            file.write(b"try %d" % self.calls.count(f"start {name}"))
        self.call("stop", name)

    @contextlib.contextmanager
    def annotate(self, name):
        self.call("enter", name)
        yield
        self.call("leave", name)

    def facts(self):
        return {"framework": "none", "device": "cuda", "device_name": "H200", "threads": 4}


class OnCpu(LoggingBackend):
    def facts(self):
        return {"framework": "none", "device": "cpu"}


class WithMemory(LoggingBackend):
    def start_memory(self):
        self.call("start memory")

    def memory(self):
        self.call("memory")
        return {"peak": 7}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(capture.PROFILE, str(tmp_path / "profile"))
    monkeypatch.setenv(capture.PROFILE_STEPS, "2")
    return tmp_path / "profile"


def take(backend, **options):
    """Take all steps of a capture; returns how many there were."""
    profile = capture.Capture(lambda: backend, **options)
    profile.begin()
    steps = 0
    while profile.running:
        with profile.data():
            backend.calls.append("batch")
        backend.calls.append("step")
        profile.step_ended()
        steps += 1
    return steps


def manifest(folder, rank=0):
    return json.loads((folder / f"rank{rank}.json").read_text(encoding="utf-8"))


def test_passes_stand_between_unprofiled_steps(folder):
    backend = LoggingBackend()
    assert take(backend) == 3 * UNPROFILED + 2 * PASS
    step = ["batch", "step"]
    recorded = [
        call
        for number in range(3)
        for call in (
            f"enter trainmark_step#{number}",
            "enter trainmark_data",
            "batch",
            "leave trainmark_data",
            "step",
            f"leave trainmark_step#{number}",
        )
    ]

    def of_pass(name):
        return [f"prepare {name}", *step * 2, f"start {name}", *recorded, f"stop {name}"]

    unprofiled = step * UNPROFILED
    expected = [*unprofiled, *of_pass("timing"), *unprofiled, *of_pass("detail"), *unprofiled]
    assert backend.calls == expected


class LateClock:
    """Marks that a thread waits for: each arrives when `behind` more steps are issued."""

    name = "jax"

    def __init__(self, calls, behind):
        self.calls, self.behind, self.marked = calls, behind, 0

    def mark(self):
        self.marked += 1
        return self.calls.count("step")

    def has_arrived(self, mark):
        return self.calls.count("step") >= mark + self.behind

    def seconds(self, mark, wait):
        return 1.0 + mark


@pytest.mark.parametrize("behind, more", [(0, 0), (3, 3), (1000, capture.MOST_TRAILING_STEPS)])
def test_steps_are_issued_until_the_last_mark_of_a_phase_has_arrived(folder, behind, more):
    """A thread that waits for a step is woken late while the host issues others: all marks are as late."""
    backend = LoggingBackend()
    clock = LateClock(backend.calls, behind)
    assert take(backend, clock=clock) == 3 * UNPROFILED + 2 * PASS + 5 * more
    assert clock.marked == 3 * 6 + 2 * 3
    assert [len(seconds) for seconds in manifest(folder)["unprofiled_step_seconds"]] == [5, 5, 5]


def test_ranks_take_as_many_steps_whatever_their_clocks_say(folder):
    backend = LoggingBackend()
    assert take(backend, clock=LateClock(backend.calls, 3), world_size=2) == 3 * UNPROFILED + 2 * PASS + 1


def test_the_manifest_has_facts_of_the_backend_in_their_places(folder):
    take(LoggingBackend())
    written = manifest(folder)
    assert (written["framework"], written["device"], written["device_name"]) == ("none", "cuda", "H200")
    assert written["facts"].pop("cores") >= 1
    assert written["facts"] == {"threads": 4, "clock": "host", "peaks": None, "steps_taken": 31}
    assert [len(seconds) for seconds in written["unprofiled_step_seconds"]] == [5, 5, 5]
    assert [entry["trace"] for entry in written["passes"]] == ["rank0-timing.json.gz", "rank0-detail.json.gz"]


def test_a_loader_that_fills_its_queue_meanwhile_gets_steps_to_empty_it(folder):
    backend = LoggingBackend()
    assert take(backend, settling=9) == 3 * (9 + 5) + 2 * (9 + 1 + 2)
    started = backend.calls.index("start timing")
    assert backend.calls[started + 1 :][:15] == [*["batch", "step"] * 7, "enter trainmark_step#0"]


@pytest.mark.parametrize(
    "call",
    ["prepare timing", "start timing", "stop timing", "enter trainmark_step#1", "leave trainmark_step#1"],
)
def test_a_pass_that_fails_is_an_error_and_the_steps_go_on(folder, call):
    backend = LoggingBackend(fails=call)
    assert take(backend) == 3 * UNPROFILED + 2 * PASS
    failed, detail = manifest(folder)["passes"]
    assert failed == {"name": "timing", "error": "RuntimeError: CUPTI is busy"}
    assert (detail["name"], detail["steps"]) == ("detail", 2)
    started = call not in ("prepare timing", "start timing")
    assert backend.calls.count("stop timing") == started


def test_a_backend_that_knows_of_memory_watches_one_step_after_all_others(folder):
    backend = WithMemory()
    assert take(backend) == 3 * UNPROFILED + 2 * PASS + 1
    assert backend.calls[-4:] == ["start memory", "batch", "step", "memory"]
    assert manifest(folder)["memory"] == {"peak": 7}
    assert len(manifest(folder)["passes"]) == 2


@pytest.mark.parametrize("call", ["start memory", "memory"])
def test_memory_that_cannot_be_watched_leaves_the_reason(folder, call):
    take(WithMemory(fails=call))
    assert manifest(folder)["memory"] is None
    assert manifest(folder)["facts"]["memory_error"] == "RuntimeError: CUPTI is busy"
    assert all("error" not in entry for entry in manifest(folder)["passes"])


def test_what_an_earlier_try_left_is_gone_and_other_ranks_are_left_alone(folder):
    folder.mkdir()
    for name in ("rank1.json", "rank1-old.json.gz", "rank10.json"):
        (folder / name).touch()
    profile = capture.Capture(LoggingBackend, rank=1)
    profile.begin()
    assert sorted(path.name for path in folder.iterdir()) == ["rank1.json.part", "rank10.json"]


@pytest.mark.parametrize("missing", ["a pass", "the profiler"])
def test_ranks_that_wait_for_each_other_take_as_many_steps_whatever_one_of_them_lacks(folder, missing):
    whole = take(LoggingBackend(), world_size=2)

    class OnePass(LoggingBackend):
        def passes(self):
            return ("timing",)

    def broken():
        raise RuntimeError("no compiler here")

    profile = capture.Capture(OnePass if missing == "a pass" else broken, world_size=2, rank=1)
    profile.begin()
    steps = 0
    while profile.running:
        profile.step_ended()
        steps += 1
    assert steps == whole == 3 * UNPROFILED + 2 * PASS + 1


@pytest.mark.parametrize("world_size, steps", [(1, 0), (2, 3 * UNPROFILED + 2 * PASS + 1)])
def test_a_rank_that_cannot_write_takes_its_steps_where_others_wait_for_it(folder, capsys, world_size, steps):
    folder.write_text("a file", encoding="utf-8")
    backend = LoggingBackend()
    assert take(backend, world_size=world_size) == steps
    assert not [call for call in backend.calls if call not in ("batch", "step")]
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_framework_without_a_profiler_leaves_a_manifest_that_says_so(folder):
    profile = capture.Capture(lambda: None)
    profile.begin()
    assert not profile.running
    assert manifest(folder)["error"] == "no profiler of this framework is known for this device"


def test_a_profiler_that_cannot_be_made_is_the_error(folder):
    profile = capture.Capture(lambda: {}["CUPTI"])
    profile.begin()
    assert not profile.running
    assert manifest(folder)["error"] == "KeyError: 'CUPTI'"


@pytest.mark.parametrize("requested", ["", "0", "-3", "many"])
def test_a_number_of_steps_that_is_none_means_the_usual(folder, monkeypatch, requested):
    monkeypatch.setenv(capture.PROFILE_STEPS, requested)
    assert take(LoggingBackend()) == 3 * UNPROFILED + 2 * (2 + 1 + 5)


def test_the_timing_pass_of_a_gpu_has_annotations_and_no_operators(tmp_path):
    torch = pytest.importorskip("torch")
    from trainmark.inside.profiler import pytorch

    backend = pytorch.Profiler()
    backend.prepare(pytorch.TIMING)
    with pytorch._annotations_only():  # as `start` does where a GPU has kernels to tell
        backend.start(pytorch.TIMING)
    with backend.annotate("trainmark_step#0"):
        torch.ones(4) @ torch.ones(4)
    backend.stop(pytorch.TIMING, str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    recorded = [(event["cat"], event["name"]) for event in events if event.get("cat") not in (None, "Trace")]
    assert recorded == [("user_annotation", "trainmark_step#0")]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.gz"]


def test_a_file_grows_while_steps_are_taken_and_goes_with_the_last(folder, monkeypatch):
    monkeypatch.setattr(capture, "SIGN_OF_LIFE_SECONDS", 0.0)
    profile = capture.Capture(LoggingBackend)
    profile.begin()
    sizes = []
    while profile.running:
        profile.step_ended()
        alive = folder / "rank0.alive"
        sizes.append(alive.stat().st_size if alive.exists() else None)
    assert sizes == [*range(1, len(sizes)), None]


def test_peaks_are_not_measured_for_a_program_that_ended_before_its_passes(folder):
    backend = LoggingBackend()
    backend.peaks = lambda: pytest.fail("nobody has a use for them")
    profile = capture.Capture(lambda: backend)
    profile.begin()
    profile.close()
    assert manifest(folder)["facts"]["peaks"] is None


def test_a_hot_device_is_kept_hot_before_every_phase(folder):
    backend = LoggingBackend()
    taken = take(backend, heating_seconds=1e-9)
    assert taken == 3 * UNPROFILED + 2 * PASS + 5


def test_heating_ends_after_a_hundred_steps(folder):
    taken = take(LoggingBackend(), heating_seconds=1e9)
    assert taken == 3 * UNPROFILED + 2 * PASS + 5 * capture.MOST_HEATING_STEPS


def test_ranks_that_train_together_do_not_heat(folder):
    steps = [take(LoggingBackend(), world_size=2, heating_seconds=seconds) for seconds in (0.0, 1e9)]
    assert steps[0] == steps[1]


class BusyMachine:
    """A clock of a machine on which steps take a second and a millisecond more after each timing pass.

    Those of the passes take as long as told.
    """

    name = "host"

    def __init__(self, backend, *profiled):
        self.calls, self.profiled, self.now = backend.calls, profiled, 0.0

    def mark(self):
        tries = self.calls.count("start timing")
        is_recorded = tries > self.calls.count("stop timing")
        self.now += self.profiled[tries - 1] if is_recorded else 1.0 + tries / 1000
        return self.now

    def seconds(self, mark, wait):
        return mark


@pytest.mark.parametrize(
    "profiled, kept",
    [
        ([1.02], 1),
        ([0.9, 1.1, 1.01], 3),
        ([1.5, 1.2, 1.3, 1.4], 2),  # none agrees
    ],
)
def test_a_pass_on_a_busy_cpu_is_taken_again_and_the_best_try_is_kept(folder, profiled, kept):
    backend = OnCpu()
    taken = take(backend, clock=BusyMachine(backend, *profiled))
    assert taken == 3 * UNPROFILED + 2 * PASS + (len(profiled) - 1) * (PASS + UNPROFILED)
    written = manifest(folder)
    assert written["passes"][0]["step_seconds"] == pytest.approx([profiled[kept - 1]] * 2)
    assert {path.name: gzip.decompress(path.read_bytes()) for path in folder.glob("*.gz")} == {
        "rank0-timing.json.gz": b"try %d" % kept,
        "rank0-detail.json.gz": b"try 1",
    }
    assert [entry["name"] for entry in written["passes"]] == ["timing", "detail"]
    beside = [round(1000 * seconds[0] - 1000) for seconds in written["unprofiled_step_seconds"]]
    assert beside == ([0, 1, 1] if kept == 1 else [kept - 1, kept, 1])
    assert written["facts"]["steps_taken"] == taken


def test_no_pass_is_begun_again_after_a_minute(folder, monkeypatch):
    monkeypatch.setattr(capture, "MOST_TRYING_SECONDS", 0.0)
    backend = OnCpu()
    assert take(backend, clock=BusyMachine(backend, 1.5)) == 3 * UNPROFILED + 2 * PASS


@pytest.mark.parametrize("backend, ranks", [(OnCpu(), 2), (LoggingBackend(), 1)])
def test_neither_ranks_nor_a_gpu_take_a_pass_again(folder, backend, ranks):
    take(backend, clock=BusyMachine(backend, 1.5), world_size=ranks)
    assert backend.calls.count("start timing") == 1


def test_a_pass_that_failed_is_not_taken_again(folder):
    take(OnCpu(fails="start timing"))
    assert "error" in manifest(folder)["passes"][0]


@pytest.mark.parametrize("more, kept", [(PASS - 1, 1.5), (PASS + 3, 1.5), (PASS + UNPROFILED + 2, 1.1)])
def test_a_program_that_ends_while_a_pass_is_taken_again_has_all_passes(folder, more, kept):
    backend = OnCpu()
    profile = capture.Capture(lambda: backend, clock=BusyMachine(backend, 1.5, 1.1, 1.2))
    profile.begin()
    for _ in range(3 * UNPROFILED + 2 * PASS + more):
        backend.calls.append("step")
        assert profile.step_ended()
    profile.close()
    first, second = manifest(folder)["passes"]
    assert (first["name"], second["name"]) == ("timing", "detail")
    assert first["step_seconds"] == pytest.approx([kept] * 2)
    assert "error" not in second
    assert sorted(path.name for path in folder.glob("*.gz")) == [second["trace"], first["trace"]]


def test_a_pass_that_was_disturbed_like_the_steps_on_one_side_of_it_does_not_agree():
    assert phases.difference([1.0, 1.2], [1.1], [1.0, 1.2]) == pytest.approx(0.0)
    assert phases.difference([1.1], [1.0], [1.2]) == pytest.approx((0.1 + 1 / 12) / 2)
