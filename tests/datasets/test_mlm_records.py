"""MLM records made of a corpus: marks, segments, masks and labels as BERT has them."""

import numpy as np
import pytest

from trainmark.data.tokens.bert_records import decode, encode
from trainmark.data.tokens.convert import Masking, Special, mlm_records
from trainmark.workloads.bert.shared import predictions

VOCABULARY = 1000
SPECIAL = Special(pad=1000, cls=1001, sep=1002, mask=1003)
# Ids that tell their own place, so that what follows what can be seen.
CORPUS = np.arange(600_000) % VOCABULARY


def make(seed=0, split="train", length=64, size=600_000):
    masking = Masking(length, VOCABULARY, SPECIAL, seed)
    pieces = iter(np.array_split(CORPUS[:size], 7))
    return np.concatenate(list(mlm_records(masking, split, pieces, size)))


@pytest.fixture(scope="module")
def rows():
    return make()


def unmasked(rows):
    """The tokens before they were masked."""
    tokens = rows["tokens"].astype(np.int64)
    row, place = np.nonzero(rows["labels"] >= 0)
    tokens[row, rows["positions"][row, place]] = rows["labels"][row, place]
    return tokens


def test_a_record_is_cls_first_sep_second_sep_padding(rows):
    tokens, lengths = unmasked(rows), rows["lengths"].astype(int)
    assert (tokens[:, 0] == SPECIAL.cls).all()
    places = np.arange(64)[None]
    assert ((tokens == SPECIAL.pad) == (places >= lengths[:, None])).all()
    assert ((tokens == SPECIAL.sep).sum(axis=1) == 2).all()
    assert (tokens[np.arange(len(rows)), lengths - 1] == SPECIAL.sep).all()
    first_sep = (tokens == SPECIAL.sep).argmax(axis=1)
    second = (places > first_sep[:, None]) & (places < lengths[:, None])
    assert (rows["segments"] == second).all()


def test_the_second_segment_follows_the_first_where_the_label_says_so(rows):
    tokens = unmasked(rows)
    first_sep = (tokens == SPECIAL.sep).argmax(axis=1)
    number = np.arange(len(rows))
    follows = tokens[number, first_sep + 1] == (tokens[number, first_sep - 1] + 1) % VOCABULARY
    assert follows[rows["next_sentence"] == 0].all()
    assert follows[rows["next_sentence"] == 1].mean() < 0.01
    assert rows["next_sentence"].mean() == pytest.approx(0.5, abs=0.03)


def test_segments_are_runs_of_the_corpus(rows):
    tokens = unmasked(rows)
    inside = (tokens < VOCABULARY)[:, 1:] & (tokens < VOCABULARY)[:, :-1]
    assert (np.diff(tokens, axis=1)[inside] % VOCABULARY == 1).all()


def test_fifteen_percent_are_predicted_and_eight_in_ten_of_them_are_hidden(rows):
    used = rows["labels"] >= 0
    wanted = np.clip(np.rint(0.15 * rows["lengths"]), 1, predictions(64))
    assert (used.sum(axis=1) == wanted).all()
    row, place = np.nonzero(used)
    positions, labels = rows["positions"][row, place], rows["labels"][row, place]
    assert (labels < VOCABULARY).all()
    assert (positions < rows["lengths"][row]).all()
    shown = rows["tokens"][row, positions]
    assert (shown == SPECIAL.mask).mean() == pytest.approx(0.8, abs=0.01)
    assert (shown == labels).mean() == pytest.approx(0.1, abs=0.01)
    for one in (0, 5, 9):
        chosen = rows["positions"][one][used[one]].astype(int)
        assert (np.diff(chosen) > 0).all()
    assert (rows["positions"][~used] == 0).all()


def test_most_records_are_full_and_one_in_ten_is_shorter(rows):
    assert (rows["lengths"] < 64).mean() == pytest.approx(0.1, abs=0.02)
    assert rows["lengths"].min() >= 8


def test_the_same_seed_gives_the_same_records_and_another_other_ones():
    assert make(size=20_000).tobytes() == make(size=20_000).tobytes()
    assert make(size=20_000).tobytes() != make(seed=1, size=20_000).tobytes()
    assert make(size=20_000).tobytes() != make(split="val", size=20_000).tobytes()


def test_the_pieces_in_which_the_corpus_comes_do_not_matter():
    masking = Masking(64, VOCABULARY, SPECIAL, 0)
    one = np.concatenate(list(mlm_records(masking, "train", iter([CORPUS]), len(CORPUS))))
    assert one.tobytes() == make().tobytes()


def test_a_record_is_an_example_with_bert_s_seven_lists(rows):
    content = encode(rows[0])
    lists = decode(memoryview(content), 0, 0, len(content))
    length, used = int(rows[0]["lengths"]), rows[0]["labels"] >= 0
    assert lists["input_ids"].tolist() == rows[0]["tokens"].tolist()
    assert lists["input_mask"].tolist() == [1] * length + [0] * (64 - length)
    assert lists["segment_ids"].tolist() == rows[0]["segments"].tolist()
    assert lists["masked_lm_weights"].tolist() == used.astype(float).tolist()
    assert lists["masked_lm_ids"].tolist() == np.where(used, rows[0]["labels"], 0).tolist()
    assert lists["masked_lm_positions"].tolist() == rows[0]["positions"].tolist()
    assert lists["next_sentence_labels"].tolist() == [rows[0]["next_sentence"]]
