"""GPT-2 in PyTorch: killed with its harness in the middle, and asked for what no training can do."""

import json
import os
import signal

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")

SMALL = {"workload": "gpt2", "size": "mini", "length": 16, "batch_per_device": 2, "data": "tokens"}
# Every tensor lies in parts on the two ranks, and a step has two micro-batches.
SHARDED = {"topology": "1n2g", "sharding": "fsdp", "accumulate": 2}
STEPS = 12
TOKENS_A_STEP = 16 * 2 * 2 * 2


@pytest.fixture
def make_corpus(trainmark):
    """Make a corpus of so many tokens and such a vocabulary in the suite's folder."""

    def make(name, tokens, vocabulary):
        words = ("--tokens", str(tokens), "--validation", "65", "--vocabulary", str(vocabulary))
        assert trainmark.finish(trainmark.start("data", "make", name, *words)).code == 0
        return trainmark.folder / name

    return make


def losses(trial, rank):
    """Return every loss that was ever reported of a step."""
    by_step, events = {}, trial / "events" / f"rank{rank}.jsonl"
    for line in events.read_text().splitlines() if events.exists() else ():
        event = json.loads(line)
        if event["event"] == "step":
            by_step.setdefault(event["step"], set()).add(event["loss"])
    return by_step


def test_killed_in_the_middle_sharded_ranks_go_on_to_the_losses_of_an_undisturbed_training(
    trainmark, make_corpus
):
    make_corpus("corpus", STEPS * TOKENS_A_STEP + 1, 64)
    trainmark.suite(**SMALL, **SHARDED, dataset="corpus", epochs=1, threads=1, checkpoint={"steps": 3})
    assert trainmark.run("--name", "whole").code == 0
    whole = [losses(trainmark.place("01"), rank) for rank in (0, 1)]
    assert [sorted(by_step) for by_step in whole] == [list(range(STEPS))] * 2
    trainmark.place("01").parents[2].rename(trainmark.folder / "whole")

    process = trainmark.start("run", "suite.yaml")
    kept = "*/trials/*/.01.part/checkpoints/step-*"
    trainmark.wait_for(lambda: any(trainmark.runs.glob(kept)), "a checkpoint")
    process.kill()
    for rank in (1, 0):
        for pid in trainmark.rank_pids(rank):
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    trainmark.wait_until_gone()

    done = trainmark.resume()
    assert done.code == 0, done.errors
    events = (trainmark.place("01") / "events" / "rank0.jsonl").read_text()
    assert events.count('"run_start"') == 2 and '"resumed_step"' in events
    assert [losses(trainmark.place("01"), rank) for rank in (0, 1)] == whole  # some twice, with the same bits


def test_what_no_training_can_do_is_refused_in_a_sentence_each_and_nothing_is_made(trainmark, make_corpus):
    make_corpus("corpus", 2000, 512)
    make_corpus("other", 2000, 1000)
    damaged = make_corpus("damaged", 2000, 512) / "train_000000.bin"
    damaged.write_bytes(damaged.read_bytes()[:-2])
    sentences = {
        "damaged/train_000000.bin says 2000 tokens of 2 bytes, and has 3998 bytes behind its header": {
            "dataset": "damaged",
            "batch_per_device": 1,  # a name of its own among the cases
        },
        "other has a vocabulary of 1000, and the model's has 512": {"dataset": "other"},
        "mini has 1,024 positions, too few for sequences of 1,025 tokens": {"length": 1025},
        "corpus has 124 training sequences of 16 tokens and a step takes 126": {"batch_per_device": 126},
        "sharding needs several ranks": {"sharding": "fsdp"},
    }
    trainmark.suite(**SMALL, cases=[{"dataset": "corpus", **case} for case in sentences.values()])
    done = trainmark.run()
    assert done.code == 2 and len(done.errors.splitlines()) == 1
    assert [sentence for sentence in sentences if sentence not in done.errors] == []
    assert not trainmark.runs.exists()
