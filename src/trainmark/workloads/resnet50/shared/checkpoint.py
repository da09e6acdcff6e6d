"""What a killed training goes on from: a folder a checkpoint, whole or not there.

    step-00001000/rank0.npz    weights, momenta, running statistics, what else the next step depends on
    step-00001000/rank1.npz    running statistics, which each rank keeps to itself

The ranks write into `.step-00001000.part`; when all have, rank 0 renames it. All that is random in a training
follows from its seed, the epoch and the image, so that its place in the epoch is the state of its generators.
Runs inside every framework's interpreter: standard library and numpy only, Python 3.7+.
"""

import json
import os
import re
import shutil
import zipfile
from typing import NamedTuple

import numpy as np

from trainmark.workloads.resnet50.shared import tensors

NAME = re.compile(r"step-(\d{8,})")
MOMENTUM, REST, PLACE = "momentum/", "rest/", "place"


class Place(NamedTuple):
    """Where a training goes on: the step of all, the epoch, and the step within it."""

    step: int = 0
    epoch: int = 0
    index: int = 0


class DamagedError(RuntimeError):
    """A checkpoint that cannot be read, in one sentence."""


class Checkpoints:
    def __init__(self, opt, training, framework):
        self.folder, self.kept = opt.checkpoints, opt.checkpoints_kept
        self.rank, self.training = opt.rank, training
        # What must be the same for a training to be the same one.
        self.about = {
            name: getattr(opt, name)
            for name in ("seed", "batch", "world_size", "image_size", "precision", "loader", "recipe_name")
        }
        self.about["framework"] = framework  # not all keep the same thing as a momentum

    def save(self, place):
        """Bytes written; None where some rank had no room, and the last good one stays."""
        part = os.path.join(self.folder, ".step-{:08d}.part".format(place.step))
        path = os.path.join(part, "rank{}.npz".format(self.rank))
        written, whole = 0, 1.0
        try:
            os.makedirs(part, exist_ok=True)
            written = self._write(path, place)
        except OSError:
            whole = 0.0
        together = self.training.total([1.0 - whole])[0] < 0.5  # all ranks have written, or not
        if self.rank == 0:
            if together:
                self._finish(part, place)
            else:
                shutil.rmtree(part, ignore_errors=True)
        return written if together else None

    def restore(self):
        """Loads the latest; the place to go on from, the beginning where there is none."""
        latest = self._steps()[-1:]
        if not latest:
            return Place()
        folder = self._path(latest[0])
        own = self._read(os.path.join(folder, "rank{}.npz".format(self.rank)))
        state = dict(self._read(os.path.join(folder, "rank0.npz")), **own)
        told = json.loads(str(state.pop(PLACE)))
        if told["about"] != self.about:
            raise DamagedError(
                "{} is of another training ({} and {}); move it away.".format(
                    folder, told["about"], self.about
                )
            )
        momenta = {name[len(MOMENTUM) :]: state[name] for name in state if name.startswith(MOMENTUM)}
        rest = {name[len(REST) :]: float(state[name]) for name in state if name.startswith(REST)}
        self.training.load({name: state[name] for name in tensors.shapes()}, momenta, rest)
        return Place(*told["place"])

    def _write(self, path, place):
        values = self.training.tensors()
        if self.rank == 0:
            values.update((MOMENTUM + name, value) for name, value in self.training.momenta().items())
        else:
            values = {name: value for name, value in values.items() if tensors.is_statistic(name)}
        values.update((REST + name, np.float64(value)) for name, value in self.training.rest().items())
        values[PLACE] = np.array(json.dumps({"place": place, "about": self.about}))
        with open(path, "wb") as file:
            np.savez(file, **values)
            file.flush()
            os.fsync(file.fileno())
        return os.path.getsize(path)

    def _finish(self, part, place):
        """One rename makes it a checkpoint; only then are older ones dropped."""
        done = self._path(place.step)
        shutil.rmtree(
            done, ignore_errors=True
        )  # of a training that was killed after it, and went on before it
        os.rename(part, done)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        for step in self._steps()[: -self.kept]:
            shutil.rmtree(self._path(step), ignore_errors=True)

    def _steps(self):
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return sorted(int(found.group(1)) for found in map(NAME.fullmatch, names) if found)

    def _path(self, step):
        return os.path.join(self.folder, "step-{:08d}".format(step))

    def _read(self, path):
        try:
            with open(path, "rb") as file:  # which numpy leaves open where it finds no archive
                found = np.load(file)
                return {name: found[name] for name in found.files}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise DamagedError(
                "{} cannot be read ({}); move its folder away, and the one before it is used.".format(
                    path, error
                )
            ) from error
