"""Sequences from token files, as batches that a step takes."""

import os
import zlib

from trainmark.workloads.common.refusal import Refusal
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens import loader as order
from trainmark.workloads.tokens.formats.mapped import UnfitTokens
from trainmark.workloads.tokens.loader import TokenLoader, sequences_in
from trainmark.workloads.tokens.markov import best_loss

CHECKSUM_BYTES = 1 << 16  # bytes at either end of a file that a checksum looks at


class TokenFeed:
    """`training(epoch, first)` and `evaluation()` give placed batches of token sequences or MLM records.

    A training step has batch × accumulate sequences a rank, an evaluation batch `batch` of them.
    """

    def __init__(self, opt):
        self.opt = opt
        self.splits = {"train": dataset.open_split(opt.dataset, "train")}
        if opt.by_epochs:
            self.splits["val"] = dataset.open_split(opt.dataset, "val")
        sequences = sequences_in(self.splits["train"], opt.length)
        self.steps_per_epoch = order.steps_per_epoch(
            sequences, opt.length, global_sequences(opt), epoch_tokens(opt)
        )
        self.validation_samples = self._samples("val") if opt.by_epochs else 0
        self.loaders = {}

    def _samples(self, split):
        """Return the tokens that are predicted, or the records."""
        opened = self.splits[split]
        sequences = sequences_in(opened, self.opt.length)
        return sequences if isinstance(opened, dataset.Records) else sequences * self.opt.length

    def open(self, training):
        """Touch the data; a clock that counts from there starts before."""
        opt = self.opt
        self.place = training.feed
        self.loaders = {
            name: TokenLoader(
                split,
                opt.length,
                sequences=opt.batch * opt.accumulate,
                evaluated=opt.batch,
                rank=opt.rank,
                world_size=opt.world_size,
                seed=opt.seed,
                vocabulary=opt.shape.vocabulary,
                allocate=training.allocate,
            )
            for name, split in self.splits.items()
        }
        return self

    def training(self, epoch, first=0):
        """Yield the batches of an epoch from step `first` on; it goes on where the epoch before it ended."""
        begin = epoch * self.steps_per_epoch + first
        return self.place(self.loaders["train"].training(begin, self.steps_per_epoch - first))

    def evaluation(self):
        return self.place(self.loaders["val"].evaluation())

    def endless(self):
        """Yield batch after batch: for measuring the rate alone."""
        return self.place(self.loaders["train"].training(0))

    def start_facts(self):
        facts = {
            "training_samples": self._samples("train"),
            "validation_samples": self.validation_samples,
            "dataset": os.path.basename(os.path.abspath(self.opt.dataset)),
            "dataset_format": self.splits["train"].format,
            "dataset_checksum": checksum(self.opt.dataset, self.splits["train"]),
        }
        plateaus = dataset.describe(self.opt.dataset).get("plateaus")
        if plateaus and not isinstance(self.splits["train"], dataset.Records):
            # The loss that no model can go below on windows of this length, as their source says.
            facts["best_loss"] = best_loss(plateaus, self.opt.length)
        return facts

    def end_facts(self):
        return {}

    def close(self):
        for loader in self.loaders.values():
            loader.close()


def global_sequences(opt):
    return opt.batch * opt.accumulate * opt.world_size


def epoch_tokens(opt):
    """Return how many tokens the recipe calls an epoch, None for the whole corpus."""
    return getattr(opt.recipe, "epoch_tokens", None)


def checksum(folder, split):
    """Return one number for the data: of its list of checksums, else of the sizes and ends of its files."""
    listed = os.path.join(str(folder), "checksums.txt")
    value = 0
    for path in [listed] if os.path.isfile(listed) else split.paths:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            for at in {0, max(0, size - CHECKSUM_BYTES)} if path != listed else {0}:
                file.seek(at)
                value = zlib.crc32(file.read(size if path == listed else CHECKSUM_BYTES), value)
        value = zlib.crc32(str(size).encode(), value)
    return "crc32:{:08x}".format(value)


def check_dataset(opt):
    """Refuse a dataset that is not there, not whole, too small, or of another vocabulary or length."""
    if not opt.dataset:
        raise Refusal("data: tokens needs a dataset; name its folder.")
    try:
        for name in ("train", "val") if opt.by_epochs else ("train",):
            _check_split(opt, dataset.open_split(opt.dataset, name))
    except UnfitTokens as error:
        raise Refusal(str(error)) from error


def _check_split(opt, split):
    records = isinstance(split, dataset.Records)
    if records and opt.shape.causal:
        raise Refusal("{} has MLM records, and this model predicts the next token.".format(opt.dataset))
    if not records and not opt.shape.causal:
        raise Refusal(
            "{0} has no MLM records; `trainmark data convert {0} NEW --to mlm --length {1}` makes "
            "them.".format(opt.dataset, opt.length)
        )
    if opt.length > opt.shape.positions:
        raise Refusal(
            "a sequence of {} tokens is longer than the model's {} positions; lower length.".format(
                opt.length, opt.shape.positions
            )
        )
    if records and split.length != opt.length:
        raise Refusal(
            "{} has records of {} tokens and length is {}; set length to {}.".format(
                opt.dataset, split.length, opt.length, split.length
            )
        )
    _check_vocabulary(opt, split)
    sequences = sequences_in(split, opt.length)
    if not sequences:
        raise Refusal(
            "{} has {} {} tokens, too few for one sequence of {} and its last target; lower length.".format(
                opt.dataset, split.count, split.split, opt.length
            )
        )
    if split.split == "train" and sequences < global_sequences(opt):
        raise Refusal(
            "{} has {} training sequences of {} tokens and a step takes {}; use a smaller batch.".format(
                opt.dataset, sequences, opt.length, global_sequences(opt)
            )
        )


def _check_vocabulary(opt, split):
    """Refuse by what the files say of themselves, else by their first few million ids."""
    size = split.vocabulary or split.largest(dataset.EARLY) + 1
    if size > opt.shape.vocabulary:
        raise Refusal(
            "{} has a vocabulary of {}, and the model's has {}.".format(
                opt.dataset, size, opt.shape.vocabulary
            )
        )
