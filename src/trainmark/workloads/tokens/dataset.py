"""A folder of token files: its format, and its splits as streams of tokens or lists of MLM records."""

import json
import os
import re

import numpy as np

from trainmark.workloads.tokens.formats import llmc, mapped, megatron, mlm, nanogpt
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

VERSION = 1
META = "meta.json"
UNFINISHED = ".unfinished"  # lies in a folder for as long as it is being made
LARGEST_META = 1 << 20
READERS = {module.NAME: module for module in (llmc, nanogpt, megatron, mlm)}
ARROW = "arrow"
# What others call a split; the first that a folder has is taken.
ALIASES = {"train": ("train", "training"), "val": ("val", "valid", "validation", "eval", "dev", "test")}
EARLY = 1 << 22  # tokens that are looked at before a training where nobody says how large the vocabulary is


class Shards:
    """The files of one split, one behind the other: `count` ids or records, as its meta.json says."""

    def __init__(self, folder, split, form, about, paths):
        self.folder, self.split, self.format, self.paths = folder, split, form, paths
        self.vocabulary = about.get("vocabulary")
        self.shards = [READERS[form].open_file(path) for path in paths]
        self.ends = np.cumsum([len(shard) for shard in self.shards])
        self.count = int(self.ends[-1])
        stated = about.get("splits", {}).get(split, self.count)
        if stated != self.count:
            raise UnfitTokens(
                "{}: its {} files hold {}, {} says {}; a file is missing or too many are there.".format(
                    folder, split, self.count, META, stated
                )
            )


class Tokens(Shards):
    """One split as a stream of `count` ids over all of its files."""

    def read(self, begin, end):
        """Return the ids from `begin` to before `end`, as they are stored where one file has them all."""
        end = min(end, self.count)
        if begin >= end:
            return self.shards[0][:0]
        first, last = np.searchsorted(self.ends, [begin, end - 1], "right")
        starts = [int(self.ends[number]) - len(self.shards[number]) for number in (first, last)]
        if first == last:
            return self.shards[first][begin - starts[0] : end - starts[0]]
        parts = [self.shards[first][begin - starts[0] :], *self.shards[first + 1 : last]]
        return np.concatenate([*parts, self.shards[last][: end - starts[1]]])

    def fill(self, windows, tokens, targets):
        """Write windows of the width of `tokens` into its rows, the same shifted by one into `targets`."""
        length = tokens.shape[1]
        begins = windows * length
        if len(self.shards) == 1:  # the usual case, and small batches are to be quick
            ids = _sliding(self.shards[0], length + 1)[begins]
            tokens[: len(ids)], targets[: len(ids)] = ids[:, :-1], ids[:, 1:]
            return
        first, last = (np.searchsorted(self.ends, places, "right") for places in (begins, begins + length))
        for number in np.unique(first[first == last]).tolist():
            rows = np.flatnonzero((first == number) & (last == number))
            starts = begins[rows] - (int(self.ends[number]) - len(self.shards[number]))
            ids = _sliding(self.shards[number], length + 1)[starts]
            tokens[rows], targets[rows] = ids[:, :-1], ids[:, 1:]
        for row in np.flatnonzero(first != last).tolist():
            ids = self.read(int(begins[row]), int(begins[row]) + length + 1)
            tokens[row], targets[row] = ids[:-1], ids[1:]

    def largest(self, most=None):
        """Return the largest id of the first `most` tokens, read a few million at a time."""
        end = self.count if most is None else min(most, self.count)
        return max(
            (int(self.read(at, min(at + EARLY, end)).max()) for at in range(0, end, EARLY)), default=-1
        )


def _sliding(ids, width):
    """Return every run of `width` ids as a row, without a copy."""
    shape, step = (len(ids) - width + 1, width), ids.strides[0]
    return np.lib.stride_tricks.as_strided(ids, shape, (step, step), writeable=False)


class Records(Shards):
    """One split as `count` MLM records of `length` tokens, `predictions` of which may be masked."""

    def __init__(self, folder, split, form, about, paths):
        super().__init__(folder, split, form, about, paths)
        kinds = {shard.dtype["tokens"].shape + shard.dtype["labels"].shape for shard in self.shards}
        if len(kinds) > 1:
            raise UnfitTokens("{}: its {} files have records of several lengths.".format(folder, split))
        ((self.length, self.predictions),) = kinds

    def read(self, rows):
        """Return the six int32 arrays of these records."""
        taken = np.empty(len(rows), self.shards[0].dtype)
        numbers = np.searchsorted(self.ends, rows, "right")
        for number in np.unique(numbers).tolist():
            here = numbers == number
            shard = self.shards[number]
            taken[here] = shard[rows[here] - (int(self.ends[number]) - len(shard))]
        return [taken[name].astype(np.int32) for name in mlm.FIELDS]

    def largest(self, most=None):
        largest, left = -1, self.count if most is None else max(1, most // self.length)
        for shard in self.shards:
            for at in range(0, min(left, len(shard)), 8192):
                rows = shard[at : min(at + 8192, left)]
                largest = max(largest, int(rows["tokens"].max()), int(rows["labels"].max()))
            left -= min(left, len(shard))
        return largest


def open_split(folder, split):
    """Return the split as Tokens or Records; Unfit, in one sentence, where it cannot be had."""
    folder = str(folder)
    form = detect(folder)
    if form == ARROW:
        raise UnfitTokens(
            "{0} has Arrow files, which no training reads: "
            "`trainmark data convert {0} NEW --to llmc` makes files that it does.".format(folder)
        )
    about = describe(folder)
    if about.get("format", form) != form:
        raise UnfitTokens(
            "{} says the format {}, the files are {}; run `trainmark data verify`.".format(
                os.path.join(folder, META), about["format"], form
            )
        )
    paths = files_of(folder, form, split)
    if not paths:
        named = "names that begin with {}".format(split)
        raise UnfitTokens(
            "{} has no {} files in the format {}: give them {}.".format(folder, split, form, named)
        )
    opened = (Records if form == mlm.NAME else Tokens)(folder, split, form, about, paths)
    if not opened.count:
        raise UnfitTokens("{}: its {} files hold nothing.".format(folder, split))
    return opened


def detect(folder):
    """Return the format of the files in a folder: by their names, and for `.bin` by their first bytes."""
    names = names_in(folder)
    if os.path.exists(os.path.join(folder, UNFINISHED)):
        raise UnfitTokens("{} is unfinished: start the command that makes it again.".format(folder))
    forms = {}
    for name in names:
        form = _form(folder, name, names)
        if form:
            forms.setdefault(form, name)
    if not forms:
        raise UnfitTokens(
            "{} holds no token files (llm.c's or nanoGPT's .bin, Megatron's .bin and .idx, .mlm.npy, "
            "Arrow).".format(folder)
        )
    if len(forms) > 1:
        both = " and ".join("{} ({})".format(form, forms[form]) for form in sorted(forms))
        raise UnfitTokens("{} holds files of several formats, {}: leave one kind there.".format(folder, both))
    return next(iter(forms))


def _form(folder, name, names):
    if name in ("state.json", "dataset_dict.json") or name.endswith(".arrow"):
        return ARROW
    if name.endswith(mlm.SUFFIX):
        return mlm.NAME
    path = os.path.join(folder, name)
    if name.endswith(".idx") and name[:-4] + ".bin" not in names:
        if mapped.first_bytes(path, len(megatron.MAGIC)) == megatron.MAGIC:
            raise UnfitTokens("{} lies there without its .bin.".format(path))
        return None
    if not name.endswith(".bin"):
        return None
    if name[:-4] + ".idx" in names:
        return megatron.NAME
    if llmc.looks_like(path):
        return llmc.NAME
    if name in ("train.bin", "val.bin"):
        return nanogpt.NAME
    raise UnfitTokens(
        "{} has neither llm.c's header nor an index of Megatron's beside it, and only train.bin and val.bin "
        "are read as nanoGPT's.".format(path)
    )


def names_in(folder):
    """Return the names in a folder in their natural order: 2 before 10."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise UnfitTokens("{} cannot be read: {}.".format(folder, error.strerror)) from error
    shown = [name for name in names if not name.startswith(".")]
    return sorted(shown, key=_natural)


def _natural(name):
    """Texts and numbers take turns, so that like is compared with like; the name itself tells 01 from 1."""
    return [int(part) if odd % 2 else part for odd, part in enumerate(re.split(r"(\d+)", name))], name


def files_of(folder, form, split):
    """Return the paths of a split; where no name says a split, all are for training."""
    suffix = mlm.SUFFIX if form == mlm.NAME else ".bin"
    names = [name for name in names_in(folder) if name.endswith(suffix)]
    return [os.path.join(folder, name) for name in of_split(names, split)]


def of_split(names, split):
    """Return those of the names that say the split by one of its aliases."""
    for alias in ALIASES[split]:
        marked = [name for name in names if _says(name, alias)]
        if marked:
            return marked
    if split != "train" or any(_says(name, alias) for name in names for alias in ALIASES["val"]):
        return []
    return list(names)


def _says(name, word):
    return re.search(r"(?:^|[^a-z]){}(?:[^a-z]|$)".format(word), name) is not None


def describe(folder):
    """Return what meta.json says, {} where there is none that is ours."""
    path = os.path.join(str(folder), META)
    if not os.path.isfile(path):
        return {}
    try:
        content = mapped.first_bytes(path, LARGEST_META + 1)
        about = json.loads(content.decode("utf-8"), parse_constant=_refuse)
        if not isinstance(about, dict) or "trainmark_tokens" not in about:
            return {}
        if about["trainmark_tokens"] != VERSION:
            raise ValueError("version {} is not known here".format(about["trainmark_tokens"]))
        _whole(about, "vocabulary", 1, 1 << 31)
        splits = about.get("splits", {})
        if not isinstance(splits, dict):
            raise ValueError("splits is no object")
        for split in splits:
            _whole(splits, split, 0, 1 << 62)
        if not isinstance(about.get("format", ""), str):
            raise ValueError("format is no text")
        plateaus = about.get("plateaus", [0.0])
        if (
            not isinstance(plateaus, list)
            or not plateaus
            or not all(isinstance(loss, float) for loss in plateaus)
        ):
            raise ValueError("plateaus are no numbers")
    except (ValueError, RecursionError) as error:
        raise UnfitTokens("{} is damaged ({}).".format(path, error)) from error
    return about


def _refuse(constant):
    raise ValueError("{} is no number".format(constant))


def _whole(values, name, least, most):
    value = values.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError("{} is {!r}".format(name, value))
