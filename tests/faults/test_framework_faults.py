"""A framework that is missing, breaks at its start, floods its log or leaves a rank behind."""

import importlib.util
import textwrap

import pytest

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed; pip install '.[pytorch]'"
)
TINY_RESNET = {"image_size": 32, "batch_per_device": 2, "warmup": {"steps": 1}, "measure": {"steps": 2}}


@pytest.fixture
def at_start_of_python(tmp_path, monkeypatch):
    """Every Python that the suite starts does this before anything else."""

    def plant(source: str) -> None:
        folder = tmp_path / "planted"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text("import os, sys, time\n" + textwrap.dedent(source))
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return plant


def test_a_framework_that_is_missing_is_skipped_with_the_command_that_installs_it(trainmark):
    if importlib.util.find_spec("mxnet"):
        pytest.skip("MXNet is installed beside Trainmark here")
    trainmark.suite(framework="mxnet", **TINY_RESNET)
    done = trainmark.run()
    assert done.code == 2
    assert "trainmark frameworks install mxnet" in done.output + done.errors
    assert not trainmark.runs.exists()


@needs_torch
def test_a_framework_that_crashes_at_import_is_skipped_with_what_it_said(trainmark, at_start_of_python):
    at_start_of_python(
        """
        if "--check" in sys.orig_argv:
            print("libfancy.so.7: cannot open shared object file", file=sys.stderr, flush=True)
            os._exit(77)
        """
    )
    trainmark.suite(framework="pytorch", **TINY_RESNET)
    done = trainmark.run()
    assert done.code == 2
    assert "libfancy.so.7: cannot open shared object file" in done.output + done.errors


@needs_torch
def test_a_framework_that_crashes_only_in_its_ranks_is_a_crash_of_that_rank(trainmark, at_start_of_python):
    at_start_of_python('if os.environ.get("RANK") == "1": os.abort()')
    trainmark.suite(framework="pytorch", topology="1n2g", **TINY_RESNET)
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert trial["outcome"] == "crashed"
    assert trial["detail"].startswith("rank 1 was ended by SIGABRT")


@needs_torch
def test_a_flood_of_output_is_kept_and_does_no_harm(trainmark, at_start_of_python):
    """Asked and measured alike: twelve megabytes on both streams, some of it like an answer."""
    at_start_of_python(
        """
        if "resnet50.pytorch" in " ".join(sys.orig_argv):
            for stream in (sys.stdout, sys.stderr):
                for _ in range(100):
                    stream.write('{"half": "an answer\\n' * 3000)
                stream.flush()
        """
    )
    trainmark.suite(framework="pytorch", **TINY_RESNET)
    assert trainmark.run().code == 0
    assert trainmark.trial()["outcome"] == "ok"
    assert (trainmark.place("01") / "logs" / "rank0.log").stat().st_size > 10e6


@needs_torch
def test_a_second_rank_that_never_starts_ends_the_trial_and_is_told(trainmark, at_start_of_python):
    """It goes silent once the first one waits for it, however long that one takes to import PyTorch."""
    at_start_of_python(
        """
        if os.environ.get("RANK") == "1":
            import socket
            store = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            with socket.socket() as called:
                while called.connect_ex(store):
                    print("nobody listens yet", flush=True)
                    time.sleep(1)
            time.sleep(600)
        """
    )
    trainmark.suite(framework="pytorch", topology="1n2g", limits={"silence": "6s"}, **TINY_RESNET)
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert trial["outcome"] == "hung"
    assert "no rank began to train" in trial["detail"]
    # Where the first one waited stands in its log.
    assert "pytorch.py" in (trainmark.place("01") / "logs" / "rank0.log").read_text()
