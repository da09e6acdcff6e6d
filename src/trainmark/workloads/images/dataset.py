"""A set of images on disk, in any format: one pread by the index gets any image."""

import contextlib
import ctypes
import json
import os
import threading

import numpy as np

from trainmark.workloads.images.native import RECORD

VERSION = 1
MOST_OPEN = 256  # descriptors that one split keeps; a folder of images has a file for each


class UnfitImages(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had from this set; one sentence that says why and what to do."""


class BadImage(Exception):  # noqa: N818
    """An image that cannot be read or decoded; names its split, its index and its file."""

    def __init__(self, split, index, why):
        self.index, self.name = index, split.name_of(index)
        super().__init__(f"{split.name} image {index} ({self.name}): {why}")


class TextLines:
    """The lines of a text file by number, without a Python object for each of a million."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._text = file.read()
        ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("\n"))
        self._ends = np.concatenate([[-1], ends])

    def __len__(self):
        return len(self._ends) - 1

    def __getitem__(self, number):
        line = self._text[int(self._ends[number]) + 1 : int(self._ends[number + 1])]
        return line.decode("utf-8", "surrogateescape")


class ImageSplit:
    """One split of a set: `count` images, their `labels`, and `read(i)`, which threads may share."""

    def __init__(self, root, name, about):
        self.root, self.name = str(root), name
        self.format = about["format"]
        self.classes = list(about["classes"])
        self.folder = os.path.join(self.root, name)
        try:
            rows = np.load(os.path.join(self.folder, "index.npy"), mmap_mode="r", allow_pickle=False)
            self._shards = TextLines(os.path.join(self.folder, "shards.txt"))
        except (OSError, ValueError) as error:
            raise UnfitImages(
                f"{self.folder} has no usable index ({error}); `trainmark data index` makes it."
            ) from error
        self._offset, self._size, self.shard_of = rows["offset"], rows["size"], rows["shard"]
        self._names = None
        self._open = {}
        self._guard = threading.Lock()
        self.count = len(rows)
        self.labels = np.array(rows["label"], np.int64)
        self._check(about)

    def read(self, index):
        """The JPEG bytes of an image; BadImage where the file has fewer than the index says."""
        index = int(index)
        size = int(self._size[index])
        shard = int(self.shard_of[index])
        try:
            data = self._pread(shard, size, int(self._offset[index]))
        except OSError as error:
            raise BadImage(self, index, f"{error.strerror}: {self.shard_path(shard)}") from error
        if len(data) != size:
            raise BadImage(self, index, f"cut short: {len(data)} of {size} bytes in {self.shard_path(shard)}")
        return data

    @contextlib.contextmanager
    def records(self, indices):
        """Where these images lie, for a decoder that reads them itself; negative ones are none."""
        rows = np.zeros(len(indices), RECORD)
        there = np.flatnonzero(indices >= 0)
        images = indices[there]
        rows["index"] = indices
        rows["offset"][there], rows["size"][there] = self._offset[images], self._size[images]
        shards = self.shard_of[images].tolist()
        paths = []
        if len(self._shards) > MOST_OPEN:
            paths = [ctypes.c_char_p(os.fsencode(self.shard_path(shard))) for shard in shards]
            rows["path"][there] = [ctypes.cast(path, ctypes.c_void_p).value for path in paths]
        else:
            rows["file"][there] = [self._descriptor_or_none(shard) for shard in shards]
        yield rows
        del paths  # the paths had to live until here

    def name_of(self, index):
        """CLASS/NAME.JPEG as in the source of the set."""
        with self._guard:
            if self._names is None:
                self._names = TextLines(os.path.join(self.folder, "names.txt"))
        return self._names[index] if index < len(self._names) else f"record {index}"

    def shard_path(self, shard):
        return os.path.join(self.folder, self._shards[shard])

    @property
    def shards(self):
        """The paths of all files of the split, in the order of the index."""
        return [self.shard_path(number) for number in range(len(self._shards))]

    def close(self):
        with self._guard:
            for opened in self._open.values():
                os.close(opened)
            self._open.clear()

    def _pread(self, shard, size, offset):
        if len(self._shards) > MOST_OPEN:
            opened = os.open(self.shard_path(shard), os.O_RDONLY)
            try:
                return os.pread(opened, size, offset)
            finally:
                os.close(opened)
        return os.pread(self._descriptor(shard), size, offset)

    def _descriptor(self, shard):
        """Of a file that stays open."""
        opened = self._open.get(shard)
        if opened is None:
            with self._guard:
                if shard not in self._open:
                    self._open[shard] = os.open(self.shard_path(shard), os.O_RDONLY)
                opened = self._open[shard]
        return opened

    def _descriptor_or_none(self, shard):
        try:
            return self._descriptor(shard)
        except OSError:
            return -1

    def _check(self, about):
        stated = about.get("splits", {}).get(self.name, self.count)
        if stated != self.count:
            raise UnfitImages(
                f"{self.folder}: the index has {self.count} images, dataset.json says {stated}; "
                "run `trainmark data verify`."
            )
        if not self.count:
            raise UnfitImages(f"{self.folder} has no images.")
        wrong = np.flatnonzero((self.labels < 0) | (self.labels >= len(self.classes)))
        if len(wrong):
            first = int(wrong[0])
            raise UnfitImages(
                f"{self.folder}: {len(wrong)} labels lie outside the {len(self.classes)} classes, first "
                f"{self.labels[first]} of {self.name_of(first)}; run `trainmark data index`."
            )


def describe(root):
    """What dataset.json says; Unfit where it is not there."""
    path = os.path.join(str(root), "dataset.json")
    try:
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
        if about["trainmark_dataset"] != VERSION:
            raise UnfitImages(f"{path} is of version {about['trainmark_dataset']}, which is not known here.")
        if not {"format", "classes"} <= set(about):
            raise KeyError("format or classes")
    except FileNotFoundError:
        if not os.path.exists(str(root)):
            raise UnfitImages(f"{root} does not exist; name the folder of a set.") from None
        raise UnfitImages(
            f"{root} has no dataset.json: it is unfinished, or no set (see `trainmark data index`)."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnfitImages(f"{path} cannot be read ({type(error).__name__}: {error}).") from error
    return about


def open_split(root, split):
    return ImageSplit(root, split, describe(root))


def require_format(root, *formats):
    """What dataset.json says, where the set has one of these formats."""
    about = describe(root)
    if about["format"] not in formats:
        raise UnfitImages(
            f"{root} has the format '{about['format']}', this loader reads {' or '.join(formats)}: "
            f"`trainmark data convert {root} NEW --to {formats[0]}` makes one."
        )
    return about
