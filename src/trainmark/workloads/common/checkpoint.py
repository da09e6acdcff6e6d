"""Checkpoints of a training: a folder each, complete or not there.

    step-00001000/rank0.npz    weights, momenta, running statistics, what else the next step depends on
    step-00001000/rank1.npz    running statistics, which each rank keeps to itself
    step-00001000/rank1.json   length and CRC-32 of rank1.npz, one such file a rank

The ranks write into `.step-00001000.part`; when all have, rank 0 renames it. A second checkpoint of the
same step, as after an evaluation, becomes `step-00001000.2`; only then is the first removed.
`.step-….gone` is one that is being removed, `damaged-step-…` one that could not be restored. All that is
random in a training follows from its seed, the epoch and the sample: its place in the epoch is the state
of its generators. A file of Trainmark 0.1 has no record of its length; it is checked by the CRC-32 that
the archive holds of each member.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import zlib
from typing import NamedTuple

import numpy as np

CHUNK_BYTES = 1 << 20


class UnreadableError(RuntimeError):
    """A file that is missing, cut short or altered; the message names it and says how."""


def write_arrays(folder, rank, values):
    """Write the arrays and their record to disk; return the bytes of the archive."""
    path = _archive_path(folder, rank)
    with open(path, "wb") as file:
        np.savez(file, **values)
        file.flush()
        os.fsync(file.fileno())
    size, crc32 = size_and_crc32(path)
    with open(_record_path(folder, rank), "w") as file:
        json.dump({"bytes": size, "crc32": crc32}, file)
        file.flush()
        os.fsync(file.fileno())
    return size


def read_arrays(folder, rank):
    """Return the arrays by name, after comparing the file with its record."""
    path = _archive_path(folder, rank)
    try:
        _compare_with_record(path, _record_path(folder, rank))
        with open(path, "rb") as file:  # which numpy leaves open where it finds no archive
            archive = np.load(file)
            return {name: archive[name] for name in archive.files}
    except UnreadableError:
        raise
    except Exception as error:  # damaged bytes end in a dozen kinds of exception in zipfile and numpy
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UnreadableError("{} cannot be read ({})".format(os.path.basename(path), reason)) from error


def size_and_crc32(path):
    """Return length and CRC-32 of a file."""
    size = crc32 = 0
    with open(path, "rb") as file:
        while True:
            chunk = file.read(CHUNK_BYTES)
            if not chunk:
                return size, crc32
            size, crc32 = size + len(chunk), zlib.crc32(chunk, crc32)


def _compare_with_record(path, record):
    if not os.path.exists(record):
        return
    with open(record) as file:
        expected = json.load(file)
    if os.path.getsize(path) != expected["bytes"]:
        raise UnreadableError(
            "{} has {} bytes of {}".format(os.path.basename(path), os.path.getsize(path), expected["bytes"])
        )
    if size_and_crc32(path)[1] != expected["crc32"]:
        raise UnreadableError("{} has another CRC-32 than when it was written".format(os.path.basename(path)))


def _archive_path(folder, rank):
    return os.path.join(folder, "rank{}.npz".format(rank))


def _record_path(folder, rank):
    return os.path.join(folder, "rank{}.json".format(rank))


CHECKPOINT_NAME = re.compile(r"step-(\d{8,})(?:\.(\d+))?")
LEFTOVER = re.compile(r"\.step-.*\.(?:part|gone)")
MOMENTUM, REST, POSITION = "momentum/", "rest/", "place"


class TrainingPosition(NamedTuple):
    """Where a training goes on: the step of all, the epoch, and the step within it."""

    step: int = 0
    epoch: int = 0
    index: int = 0


class OtherTrainingError(RuntimeError):
    """A checkpoint that another training wrote into this folder, in one sentence."""


class Checkpoints:
    """The checkpoints of one training, as one rank sees them; all ranks call the same methods together.

    `skipped` lists what `restore` passed over as {"name", "reason"}; `failure` is why the last `save` failed.
    """

    def __init__(self, spec, opt, training, framework):
        self.folder, self.retained = opt.checkpoints, opt.checkpoints_kept
        self.spec, self.opt, self.rank, self.training = spec, opt, opt.rank, training
        self.skipped, self.failure = [], None
        # What must be the same for a training to be the same one.
        self.about = {
            name: getattr(opt, name)
            for name in ("seed", "batch", "world_size", *spec.axes, "precision", "loader", "recipe_name")
        }
        self.about["framework"] = framework  # not all keep the same thing as a momentum

    def save(self, place):
        """Return the bytes written; None where some rank failed, and the last good checkpoint stays."""
        part = os.path.join(self.folder, ".step-{:08d}.part".format(place.step))
        written, self.failure = 0, None
        try:
            os.makedirs(part, exist_ok=True)
            written = write_arrays(part, self.rank, self._values(place))
        except (OSError, ValueError) as error:  # zipfile gives ValueError on closing after a failed write
            self.failure = _reason(error)
        written_by_all = self._all(self.failure is None)
        if self.rank == 0:
            try:
                if written_by_all:
                    self._publish(part, place.step)
            except OSError as error:
                self.failure = _reason(error)
            shutil.rmtree(part, ignore_errors=True)  # where it was not renamed
        complete = self._all(self.failure is None)  # also waits until the part is gone
        if not complete:
            self.failure = self.failure or "another rank could not write its part"
        return written if complete else None

    def restore(self):
        """Load the newest checkpoint that all ranks can read; return its place, or the beginning."""
        if self.rank == 0:
            self._remove_leftovers()
        candidates = self._keys() if self.rank == 0 else []
        while True:
            key = self._proposed(candidates.pop() if candidates else None)
            if key is None:
                return TrainingPosition()
            state, reason, foreign = None, None, None
            try:
                state = self._read(_name(key))
            except UnreadableError as error:
                reason = str(error)
            except OtherTrainingError as error:
                foreign = error
            unreadable, others = self.training.total([float(reason is not None), float(foreign is not None)])
            if others > 0.5:
                raise foreign or OtherTrainingError(
                    "{} is of another training; move it away.".format(os.path.join(self.folder, _name(key)))
                )
            if unreadable < 0.5:
                return self._load(state)
            self._skip(_name(key), reason or "not readable by {:.0f} ranks".format(unreadable))

    def _values(self, place):
        values, momenta = self.training.tensors(), self.training.momenta()  # sharded ones are gathered by all
        if self.rank == 0:
            values.update((MOMENTUM + name, value) for name, value in momenta.items())
        else:
            values = {name: value for name, value in values.items() if self.spec.is_statistic(name)}
        values.update((REST + name, np.float64(value)) for name, value in self.training.rest().items())
        values[POSITION] = np.array(json.dumps({"place": place, "about": self.about}))
        return values

    def _publish(self, part, step):
        """Rename the part, which makes it a checkpoint; once that is on disk, drop those it replaces."""
        _sync(part)
        same_step = [revision for other, revision in self._keys() if other == step]
        done = (step, max(same_step) + 1 if same_step else 1)
        os.rename(part, os.path.join(self.folder, _name(done)))
        _sync(self.folder)
        keys = self._keys()
        steps = sorted({other for other, _ in keys if other <= step})[-self.retained :]
        newest = {other: max(key for key in keys if key[0] == other) for other in steps}
        for key in keys:
            if newest.get(key[0]) != key:  # later ones are of a training that was killed, and went back
                self._remove(_name(key))

    def _read(self, name):
        """Return this rank's state: what rank 0 wrote, and its own statistics in place of rank 0's."""
        folder = os.path.join(self.folder, name)
        state = read_arrays(folder, 0)
        try:
            record = json.loads(str(state[POSITION]))
            about, place = record["about"], TrainingPosition(*map(int, record["place"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableError("rank0.npz does not say of which step it is") from error
        if about != self.about:
            raise OtherTrainingError(
                "{} is of another training ({} and {}); move it away.".format(folder, about, self.about)
            )
        if self.rank:
            state.update(read_arrays(folder, self.rank))
        for tensor, shape in self.spec.shapes(self.opt).items():
            if tensor not in state or state[tensor].shape != tuple(shape):
                raise UnreadableError("rank{}.npz lacks {}".format(self.rank, tensor))
        state[POSITION] = place
        return state

    def _load(self, state):
        place = state.pop(POSITION)
        momenta = {name[len(MOMENTUM) :]: state[name] for name in state if name.startswith(MOMENTUM)}
        rest = {name[len(REST) :]: float(state[name]) for name in state if name.startswith(REST)}
        self.training.load({name: state[name] for name in self.spec.shapes(self.opt)}, momenta, rest)
        return place

    def _all(self, succeeded):
        """Whether it succeeded on all ranks; waits for them."""
        return self.training.total([0.0 if succeeded else 1.0])[0] < 0.5

    def _proposed(self, key):
        """Return the step and revision that rank 0 proposes to all; None where it has no more."""
        step, revision = key or (0, 0)
        step, revision = self.training.total([float(step), float(revision)])
        return (round(step), round(revision)) if round(revision) else None

    def _skip(self, name, reason):
        self.skipped.append({"name": name, "reason": reason})
        sys.stderr.write("checkpoint {} is passed over: {}\n".format(name, reason))
        sys.stderr.flush()
        if self.rank == 0:  # kept to be looked at, but out of the way of the next ones
            aside = os.path.join(self.folder, "damaged-" + name)
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.rename(os.path.join(self.folder, name), aside)

    def _remove(self, name):
        """Remove a checkpoint so that a kill leaves all of it or nothing under its name."""
        gone = os.path.join(self.folder, ".{}.gone".format(name))
        shutil.rmtree(gone, ignore_errors=True)
        try:
            os.rename(os.path.join(self.folder, name), gone)
        except OSError:
            return
        shutil.rmtree(gone, ignore_errors=True)

    def _remove_leftovers(self):
        for name in self._listed():
            if LEFTOVER.fullmatch(name):
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)

    def _keys(self):
        """Return step and revision of every checkpoint, oldest first."""
        matches = filter(None, map(CHECKPOINT_NAME.fullmatch, self._listed()))
        keys = {(int(match.group(1)), int(match.group(2) or 1)): match.group() for match in matches}
        return sorted(key for key, name in keys.items() if name == _name(key))

    def _listed(self):
        return os.listdir(self.folder) if os.path.isdir(self.folder) else []


def _name(key):
    step, revision = key
    return "step-{:08d}".format(step) + (".{}".format(revision) if revision > 1 else "")


def _reason(error):
    return getattr(error, "strerror", None) or str(error)


def _sync(folder):
    """Have the names in a folder on disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
