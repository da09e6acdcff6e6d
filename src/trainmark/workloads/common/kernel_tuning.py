"""Which tile sizes are fastest here: tried once for each shape, and remembered on disk for the device."""

import json
import os
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import triton

MOST_WEIGHTS = 256 * 256  # more, and a product is bound by arithmetic, at which libraries are better


def side(inputs):
    """Of the tiles of a small square matrix: many, since each is a short product; but not too many."""
    return 32 if inputs < 512 else 64


def dividing(tiles, outputs, inner, most=MOST_WEIGHTS):
    """Of tiles of rows, outputs and inner columns those that divide a product; of a large one none."""
    if outputs * inner > most:
        return []
    return [tile for tile in tiles if outputs % tile[1] == 0 and inner % tile[2] == 0]


class Tuner:
    """`choose` runs every candidate where the shape is new, and the best of them where it is not.

    A candidate is a tile, or the name of a way, which may find that no tile of its kernel fits the device.
    """

    def __init__(self, folder=None):
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmark" / "tiles"
        self.folder = Path(folder) if folder else cache
        self.known, self.reported = {}, {}

    def choose(self, name, key, candidates, launch, device):
        if device.type != "cuda":
            return candidates[0]
        place = "{} {} triton-{}".format(name, torch.cuda.get_device_name(device), triton.__version__)
        known = self._known(place)
        # Other candidates than last time: found anew.
        text = " ".join(map(str, (*key, zlib.crc32(repr(candidates).encode()))))
        if text not in known:
            known[text] = self._fastest(candidates, launch, device)
            self._keep(place, known)
        chosen, unfit = known[text]
        self._report(name, key, [way for way in unfit if isinstance(way, str)], chosen)
        return chosen

    def _fastest(self, candidates, launch, device):
        def fits(candidate):
            try:
                with torch.cuda.device(device):
                    launch(candidate)
            except (triton.runtime.errors.OutOfResources, triton.CompilationError, NotFittingError):
                return False  # too large a tile for this device, or none that is small enough
            return True

        # Tiles are compiled side by side; ways choose tiles themselves, and would time one another.
        side_by_side = len(candidates) if isinstance(candidates[0], tuple) else 1
        with ThreadPoolExecutor(side_by_side) as pool:
            fitting = [tile for tile, does_fit in zip(candidates, pool.map(fits, candidates)) if does_fit]
        if not fitting:
            raise NotFittingError
        unfit = [tile for tile in candidates if tile not in fitting]
        return min(fitting, key=lambda tile: milliseconds(lambda: launch(tile))), unfit

    def _report(self, name, key, unfit, chosen):
        """Where a kernel has no tile for this device, its layer is PyTorch's: once for each layer."""
        if unfit and (name, key) not in self.reported:
            shape = " × ".join(str(side) for side in key if isinstance(side, int))
            sentence = "no tile of {} fits this device at {}: {}".format(name, shape, chosen)
            self.reported[name, key] = sentence
            print(sentence, file=sys.stderr)

    def fallbacks(self):
        """Return all that was reported so far."""
        return list(self.reported.values())

    def _known(self, place):
        if place not in self.known:
            try:
                self.known[place] = json.loads((self.folder / _file(place)).read_text())
            except (OSError, ValueError):
                self.known[place] = {}
        return self.known[place]

    def _keep(self, place, known):
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = self.folder / "{}.{}".format(_file(place), os.getpid())
            part.write_text(json.dumps(known, indent=1))
            part.replace(self.folder / _file(place))
        except OSError:
            pass  # found again next time


def milliseconds(work):
    """Replayed from a graph, as in a step: what the host needs to launch it does not count."""
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        return triton.testing.do_bench_cudagraph(work, rep=10, return_mode="median")


class NotFittingError(Exception):
    """No tile of a kernel fits this device."""


def _file(place):
    return "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in place) + ".json"


tuner = Tuner()
