"""The library in C that records with CUPTI, compiled here and played to by a fake CUPTI.

NVIDIA's headers come with the CUDA toolkit or the wheels nvidia-cuda-cupti and nvidia-cuda-runtime; CUDA_HOME
may name a folder that has them in `include`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.inside.profiler.cupti import build, records

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
STEPS = 40


@pytest.fixture(scope="module")
def folder(cupti_folder):
    return cupti_folder


@pytest.fixture(scope="module")
def run(fake, library):
    """Calls the program; returns what it printed on standard output and standard error."""

    def call(steps: int, how: str, argument: object, **more: str) -> tuple[str, str]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "TRAINMARK_CUPTI": library,
            "TRAINMARK_CUPTI_LIBRARY": str(fake),
            **more,
        }
        command = [sys.executable, str(HERE / "cupti_program.py"), str(fake), str(steps), how, str(argument)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return call


def trace_at(path: Path) -> dict:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def profiled(folder, run):
    path = folder / "rank0-timing.json.gz"
    out, _ = run(STEPS, "profile", path, FAKE_CUPTI_DROPS="17")
    return json.loads(out), trace_at(path)


def of(trace: dict, category: str) -> list[dict]:
    return [event for event in trace["traceEvents"] if event["cat"] == category]


def test_the_library_compiles_without_a_warning(folder, library, monkeypatch):
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Werror"))
    assert build.build(str(folder / "strict")).reason is None


def test_it_is_compiled_once(folder, library):
    before = Path(library).stat().st_mtime_ns
    assert build.build(str(folder / "cache")).path == library
    assert Path(library).stat().st_mtime_ns == before


def test_no_record_is_missing_and_none_comes_twice(profiled):
    _, trace = profiled
    counts = {
        category: len(of(trace, category))
        for category in (
            "kernel",
            "gpu_memcpy",
            "gpu_memset",
            "cuda_runtime",
            "cuda_driver",
            "user_annotation",
        )
    }
    assert counts == {
        "kernel": 3 * STEPS,
        "gpu_memcpy": 2 * STEPS,
        "gpu_memset": STEPS,
        "cuda_runtime": 2 * STEPS,  # cudaGetDevice is not recorded
        "cuda_driver": STEPS,
        "user_annotation": STEPS,
    }


def test_kernels_are_demangled_and_calls_are_without_their_version(profiled):
    _, trace = profiled
    assert {event["name"] for event in of(trace, "kernel")} == {"void gemm<float>(float*, int)", "relu"}
    assert {event["name"] for event in of(trace, "cuda_runtime")} == {"cudaLaunchKernel", "cudaGraphLaunch"}
    assert {event["name"] for event in of(trace, "cuda_driver")} == {"cuMemcpyHtoDAsync"}


def test_a_kernel_of_a_graph_has_its_node_and_the_launch_of_the_graph(profiled):
    _, trace = profiled
    launches = {event["args"]["correlation"]: event["name"] for event in of(trace, "cuda_runtime")}
    for event in of(trace, "kernel"):
        in_graph = event["args"].get("graph node id", 0) > 0
        assert launches[event["args"]["correlation"]] == (
            "cudaGraphLaunch" if in_graph else "cudaLaunchKernel"
        )
    assert sum("graph node id" in event["args"] for event in of(trace, "kernel")) == 2 * STEPS


def test_copies_have_their_direction_bytes_stream_and_device(profiled):
    _, trace = profiled
    first, second = of(trace, "gpu_memcpy")[:2]
    assert (first["name"], first["args"]["bytes"], first["tid"], first["pid"]) == ("Memcpy HtoD", 4096, 9, 0)
    assert (second["name"], second["args"]["bytes"], second["pid"]) == ("Memcpy PtoP", 128, 1)
    assert of(trace, "gpu_memset")[0]["args"]["bytes"] == 64


def test_annotations_are_on_the_clock_and_in_the_thread_of_the_calls(profiled):
    _, trace = profiled
    launches = [event for event in of(trace, "cuda_runtime") if event["name"] == "cudaLaunchKernel"]
    for annotation, launch in zip(of(trace, "user_annotation"), launches, strict=True):
        assert annotation["tid"] == launch["tid"]
        assert annotation["ts"] <= launch["ts"] <= annotation["ts"] + annotation["dur"]


def test_dropped_records_are_counted(profiled):
    answer, trace = profiled
    assert trace["lost_records"] == 17
    assert answer["facts"]["lost_records"] == {"timing": 17}


def test_buffers_that_fill_up_lose_nothing(folder, run):
    path = folder / "many.json.gz"
    run(8000, "profile", path, FAKE_STEP_SECONDS="0")  # 10 MB of CUPTI's records where a buffer has 8
    trace = trace_at(path)
    assert len(of(trace, "kernel")) == 24000
    assert trace["lost_records"] == 0


def test_what_cupti_refuses_is_a_sentence(folder, run):
    out, _ = run(1, "profile", folder / "refused.json.gz", FAKE_CUPTI_REFUSES="1")
    assert json.loads(out) == {"error": "CUPTI does not record: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"}
    assert not (folder / "refused.json.gz").exists()


def test_a_program_without_hooks_is_recorded_until_it_ends(folder, run, library):
    variables = build.environment(library, str(folder / "injected"), after=0, seconds=60)
    del variables["CUDA_INJECTION64_PATH"]  # the program plays the driver itself
    variables.pop("TRAINMARK_CUPTI_LIBRARY", None)
    run(STEPS, "inject", library, **variables)
    (path,) = folder.glob("injected.*")
    output = folder / "injected.json.gz"
    assert records.convert(str(path), [], str(output), 42) == 0
    assert len(of(trace_at(output), "kernel")) == 3 * STEPS


def test_without_a_file_the_injection_does_nothing(folder, run, library):
    _, err = run(1, "inject", library, TRAINMARK_CUPTI_FILE="")
    assert err == ""


def test_a_library_that_is_no_cupti_is_a_sentence_and_the_program_goes_on(folder, run, library):
    _, err = run(
        1, "inject", library, TRAINMARK_CUPTI_FILE=str(folder / "none"), TRAINMARK_CUPTI_LIBRARY="libm.so.6"
    )
    assert err == "trainmark: CUDA is not profiled: libcupti has no cuptiActivityRegisterCallbacks\n"


def test_records_that_end_early_are_refused(folder, run, library):
    whole = folder / "whole"
    variables = {"TRAINMARK_CUPTI_FILE": str(whole), "TRAINMARK_CUPTI_SECONDS": "60"}
    run(2, "inject", library, **variables)
    (path,) = folder.glob("whole.*")
    cut = folder / "cut"
    cut.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(records.BrokenRecordsError, match="end early"):
        records.convert(str(cut), [], str(folder / "cut.json.gz"), 42)
    assert not list(folder.glob("cut.json.gz*"))
    cut.write_bytes(b"no records at all, but text that is long enough for one of them ........")
    with pytest.raises(records.BrokenRecordsError, match="no file of CUPTI records"):
        records.convert(str(cut), [], str(folder / "cut.json.gz"), 42)


def test_no_compiler_and_no_headers_are_sentences(folder, monkeypatch):
    monkeypatch.setattr(build, "_compiler", lambda: None)
    assert "No C compiler" in build.build(str(folder)).reason
    monkeypatch.setattr(build, "_compiler", lambda: "/usr/bin/cc")
    monkeypatch.setattr(build, "_candidates", lambda: [])
    assert "headers of CUPTI" in build.build(str(folder)).reason
