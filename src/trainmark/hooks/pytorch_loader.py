"""Samples of a PyTorch program, by the batches that its data loaders hand out."""

import functools
import itertools
import weakref
from collections import deque

from trainmark import probe
from trainmark.hooks.pytorch import RECORDER

PASSES = itertools.count()  # numbers of the passes over loaders, and of the loaders
LOADERS = {}


def watch_loaders(module):
    """Wrap the iterators of `torch.utils.data.dataloader`, for one process and for several."""
    base = module._BaseDataLoaderIter
    next_batch, next_index, reset = base.__next__, base._next_index, base._reset

    @functools.wraps(next_index)
    def counted_index(self):
        index = next_index(self)
        sizes = self.__dict__.setdefault("_trainmark_sizes", deque())
        sizes.append(len(index) if self._auto_collation else None)
        return index

    @functools.wraps(reset)
    def cleared_reset(self, *args, **kwargs):
        for name in ("_trainmark_sizes", "_trainmark_pass"):  # of an epoch that was left before its end
            self.__dict__.pop(name, None)
        RECORDER.queue(self._num_workers * (getattr(self, "_prefetch_factor", None) or 0))
        return reset(self, *args, **kwargs)

    @functools.wraps(next_batch)
    def timed_next(self):
        asked = probe.now()
        loader_pass = self.__dict__.get("_trainmark_pass")
        if loader_pass is None:
            loader_pass = self._trainmark_pass = next(PASSES)
        gradients = module.torch.is_grad_enabled()
        try:
            with RECORDER.fetching():
                batch = next_batch(self)
        except StopIteration:
            RECORDER.exhausted(loader_pass)
            raise
        sizes = self.__dict__.get("_trainmark_sizes")
        asked_for = sizes.popleft() if sizes else None
        samples = _samples(self, module, batch, asked_for)
        # A loader's sampler of batches is its own; a data set may be the same for training and evaluation.
        loader = _number(getattr(self, "_index_sampler", self._dataset))
        RECORDER.load(loader, samples, asked, probe.now(), loader_pass, gradients)
        return batch

    base.__next__, base._next_index, base._reset = timed_next, counted_index, cleared_reset


def _number(sampler):
    """Tell an object from others, also from one that had its address before."""
    known, number = LOADERS.get(id(sampler), (None, 0))
    if known is None or known() is not sampler:
        try:
            known = weakref.ref(sampler)
        except TypeError:  # such as a list of batches: it is kept, and so is its address
            known = functools.partial(_same, sampler)
        number = next(PASSES)
        LOADERS[id(sampler)] = known, number
    return number


def _same(value):
    return value


def _samples(iterator, module, batch, asked_for):
    """Count the samples of a batch; None where that would be a guess.

    The indices asked for are the samples of a map-style dataset. An iterable one may end amid a batch, and
    one that makes batches itself has no indices: there the tensors' common first dimension decides.
    """
    is_map = iterator._dataset_kind == module._DatasetKind.Map
    if is_map and asked_for is not None:
        return asked_for
    lengths = set()
    _collect_lengths(batch, lengths)
    if len(lengths) != 1:
        return None
    length = lengths.pop()
    return length if asked_for is None or length <= asked_for else None


def _collect_lengths(batch, lengths, depth=0):
    """Gather the first dimension of every array in a batch of dictionaries, lists and tuples."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        if len(shape):
            lengths.add(int(shape[0]))
    elif depth < 4:
        inner = (
            batch.values() if hasattr(batch, "values") else batch if isinstance(batch, (list, tuple)) else ()
        )
        for each in inner:
            _collect_lengths(each, lengths, depth + 1)
