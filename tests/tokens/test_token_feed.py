"""The feed of a transformer's training: its batches, where it goes on, and what it refuses."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import token_files

from trainmark.workloads.common.refusal import Refusal
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.feed import TokenFeed, check_dataset
from trainmark.workloads.tokens.formats.mapped import UnfitTokens
from trainmark.workloads.tokens.loader import BATCHES_IN_USE, Prefetched, TokenLoader
from trainmark.workloads.tokens.markov import best_loss
from trainmark.workloads.transformers.flops import TransformerShape

IDS = np.random.RandomState(2).randint(0, 500, 4003)
DECODER = TransformerShape(1, 8, 1, 1, 8, vocabulary=512, positions=64)
ENCODER = DECODER._replace(causal=False)


@pytest.fixture
def corpus(tmp_path):
    for number, part in enumerate(np.array_split(IDS, 3)):
        token_files.llmc(tmp_path / f"train_{number}.bin", part)
    token_files.llmc(tmp_path / "val.bin", IDS[:330])
    return tmp_path


def options(folder, **changed):
    settings = {
        "dataset": folder,
        "length": 16,
        "batch": 4,
        "accumulate": 2,
        "rank": 0,
        "world_size": 1,
        "seed": 3,
        "by_epochs": True,
        "workers": 1,
        "shape": DECODER,
        "recipe": SimpleNamespace(epoch_tokens=None),
        **changed,
    }
    return SimpleNamespace(**settings)


class PlainTraining:
    """Takes batches as they come."""

    allocate = None

    @staticmethod
    def feed(batches):
        return batches


def opened(folder, **changed):
    return TokenFeed(options(folder, **changed)).open(PlainTraining)


def listed(batches):
    return [[array.tolist() for array in batch] for batch in batches]


def test_an_epoch_has_every_window_once_and_its_targets_are_the_tokens_shifted_by_one(corpus):
    feed = opened(corpus)
    assert feed.steps_per_epoch == 250 // 8
    batches = list(feed.training(0))
    assert len(batches) == feed.steps_per_epoch
    for tokens, targets in batches:
        assert tokens.shape == targets.shape == (8, 16)
        assert tokens.dtype == targets.dtype == np.int32
        assert (tokens[:, 1:] == targets[:, :-1]).all()
    rows = {tuple(row) for tokens, _ in batches for row in tokens.tolist()}
    windows = {tuple(IDS[at : at + 16].tolist()) for at in range(0, 4000, 16)}
    assert len(rows) == 31 * 8
    assert rows <= windows
    feed.close()


def test_an_epoch_goes_on_where_the_last_ended_until_the_corpus_is_through(corpus):
    feed = opened(corpus, recipe=SimpleNamespace(epoch_tokens=16 * 8 * 5))
    assert feed.steps_per_epoch == 5
    epochs = [listed(feed.training(epoch)) for epoch in range(7)]
    stream = listed(itertools.islice(feed.endless(), 35))
    assert list(itertools.chain.from_iterable(epochs)) == stream
    rows = [tuple(row) for tokens, _ in stream for row in tokens]
    assert len(set(rows[:250])) == 250
    assert sorted(rows[:30]) != sorted(rows[250:280])
    feed.close()


def test_a_training_goes_on_at_any_step_as_if_it_had_not_stopped(corpus):
    feed = opened(corpus)
    assert listed(feed.training(1, 7)) == listed(feed.training(1))[7:]
    feed.close()


def test_the_global_batch_is_the_same_on_any_number_of_ranks(corpus):
    alone = listed(opened(corpus, batch=4, accumulate=2).training(0))
    ranks = [
        listed(opened(corpus, batch=2, accumulate=1, rank=rank, world_size=4).training(0))
        for rank in range(4)
    ]
    for step, batch in enumerate(alone):
        for part, whole in enumerate(batch):
            assert [row for rank in ranks for row in rank[step][part]] == whole


def test_every_validation_window_is_evaluated_once_and_padding_has_no_target(corpus):
    feeds = [opened(corpus, rank=rank, world_size=3) for rank in range(3)]
    batches = [listed(feed.evaluation()) for feed in feeds]
    assert {len(share) for share in batches} == {2}
    targets = [row for share in batches for _, rows in share for row in rows]
    real = [row for row in targets if row != [-1] * 16]
    assert sorted(real) == sorted(IDS[at + 1 : at + 17].tolist() for at in range(0, 320, 16))
    assert feeds[0].validation_samples == 320
    assert all(len(tokens) == 4 for share in batches for tokens, _ in share)


def test_mlm_records_come_as_six_arrays_and_padding_has_no_label(tmp_path):
    token_files.mlm(tmp_path / "train.mlm.npy", 20)
    records = np.load(token_files.mlm(tmp_path / "val.mlm.npy", 6))
    feed = opened(tmp_path, shape=ENCODER)
    assert (feed.steps_per_epoch, feed.validation_samples) == (2, 6)
    assert [array.shape for array in next(feed.training(0))] == [(8, 16), (8, 16), (8,), (8, 2), (8, 2), (8,)]
    first, second = feed.evaluation()
    for array, name in zip(first, records.dtype.names, strict=True):
        assert array.tolist() == records[name][:4].tolist()
    tokens, _, lengths, _, labels, next_sentence = second
    assert (lengths[2:] == 1).all()
    assert (tokens[2:] == 0).all()
    assert (labels[2:] == -1).all()
    assert (next_sentence[2:] == -1).all()
    feed.close()


@pytest.mark.parametrize(("field", "value"), [("lengths", 0), ("lengths", 17), ("positions", 16)])
def test_a_damaged_record_stops_the_training_with_a_sentence(tmp_path, field, value):
    path = token_files.mlm(tmp_path / "train.mlm.npy", 16)
    records = np.load(path)
    records[field][5, ...] = value
    np.save(path, records)
    feed = opened(tmp_path, shape=ENCODER, by_epochs=False)
    with pytest.raises(UnfitTokens, match="beyond their 16 tokens; run `trainmark data verify`"):
        list(feed.training(0))


def test_buffers_are_used_again_only_when_nobody_reads_them(corpus):
    split = dataset.open_split(corpus, "train")
    allocated = []

    def allocate(shape, dtype):
        allocated.append(shape)
        return np.empty(shape, dtype)

    loader = TokenLoader(split, 16, 8, 4, allocate=allocate)
    fresh = TokenLoader(split, 16, 8, 4)
    recent = []
    for batch, wanted in zip(itertools.islice(loader.training(0), 40), fresh.training(0)):  # noqa: B905 - one is endless
        recent = [*recent, (batch, wanted)][-BATCHES_IN_USE:]
        assert all((ours[0] == theirs[0]).all() for ours, theirs in recent)
    assert len(allocated) < 20
    loader.close()
    fresh.close()


def test_what_goes_wrong_while_batches_are_made_is_raised_to_the_caller():
    def make(step):
        if step == 2:
            raise UnfitTokens("no more.")
        return step

    stream = Prefetched(make, itertools.count())
    assert [next(stream), next(stream)] == [0, 1]
    with pytest.raises(UnfitTokens, match="no more"):
        next(stream)
    assert list(stream) == []


def test_an_id_that_the_model_does_not_have_stops_the_training_with_a_sentence(tmp_path):
    token_files.llmc(tmp_path / "train.bin", np.where(np.arange(4000) == 3900, 512, 7))
    feed = opened(tmp_path, by_epochs=False)
    with pytest.raises(UnfitTokens, match="have the id 512, and the model's vocabulary has 512"):
        list(feed.training(0))


def test_the_facts_name_the_data_and_the_best_loss_that_its_source_allows(corpus, trainmark):
    trainmark("data", "make", "known", "--tokens", "20000", "--vocabulary", "100")
    facts = TokenFeed(options("known")).start_facts()
    plateaus = dataset.describe("known")["plateaus"]
    assert facts["best_loss"] == best_loss(plateaus, 16)
    assert (facts["dataset"], facts["dataset_format"]) == ("known", "llmc")
    assert facts["training_samples"] == 19_999 // 16 * 16
    assert TokenFeed(options(corpus)).start_facts()["dataset_checksum"] != facts["dataset_checksum"]
    assert "best_loss" not in TokenFeed(options(corpus)).start_facts()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"dataset": None}, "data: tokens needs a dataset; name its folder."),
        ({"dataset": "nowhere"}, "nowhere cannot be read: No such file or directory."),
        ({"shape": DECODER._replace(vocabulary=300)}, "has a vocabulary of 500, and the model's has 300."),
        ({"length": 65}, "a sequence of 65 tokens is longer than the model's 64 positions; lower length."),
        ({"length": 5000, "shape": DECODER._replace(positions=9999)}, "4003 train tokens, too few for one"),
        ({"length": 400, "shape": DECODER._replace(positions=9999)}, "330 val tokens, too few for one"),
        (
            {"batch": 126},
            "has 250 training sequences of 16 tokens and a step takes 252; use a smaller batch.",
        ),
        ({"world_size": 32}, "and a step takes 256; use a smaller batch."),
        ({"shape": ENCODER}, "NEW --to mlm --length 16` makes them."),
    ],
)
def test_what_cannot_be_trained_on_is_refused_in_one_sentence(corpus, changed, sentence):
    assert check_dataset(options(corpus)) is None
    with pytest.raises(Refusal) as refused:
        check_dataset(options(**{"folder": corpus, **changed}))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_records_of_another_length_or_for_another_model_are_refused(tmp_path):
    token_files.mlm(tmp_path / "train.mlm.npy", 20)
    with pytest.raises(Refusal, match="this model predicts the next token"):
        check_dataset(options(tmp_path, by_epochs=False))
    with pytest.raises(Refusal, match="records of 16 tokens and length is 32; set length to 16"):
        check_dataset(options(tmp_path, by_epochs=False, shape=ENCODER, length=32))
    check_dataset(options(tmp_path, by_epochs=False, shape=ENCODER))
