"""Steps of a PyTorch program, by the hook that every optimizer calls after `step()`, with samples and pauses.

A step that GradScaler skips for infinite gradients was computed all the same, and counts. Where a CUDA
graph holds the optimizer, a replay is a step. Samples are counted in the batches that data loaders hand
out. Backward passes, modes of modules and checkpoints tell training from evaluation; nothing is called
for an operation.
"""

import functools
import itertools
import sys
import weakref
from collections import deque

from trainmark import probe
from trainmark.inside.hooks.recorder import CHECKPOINT, Recorder, host_start


def _profiler():
    from trainmark.inside.profiler import pytorch

    return pytorch.Profiler()


RECORDER = Recorder("pytorch", _profiler)
STEPPED = set()  # optimizers whose hook was called within the running GradScaler.step
COUNTED = {}  # optimizer → how many numbers it trains
TRAINING_GRAPHS = set()
CAPTURING = []


def watch_optimizers(module):
    """Register the global hook of `torch.optim.optimizer` (PyTorch 2.0 and later)."""
    module.register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer, args, kwargs):
    if CAPTURING:
        TRAINING_GRAPHS.add(id(CAPTURING[-1]))
        return
    STEPPED.add(id(optimizer))
    if id(optimizer) not in COUNTED:
        _count_parameters(optimizer)
    RECORDER.step(id(optimizer), _start)


def _count_parameters(optimizer):
    """A forecast asks for the size of the model; of several optimizers it cannot be told which share one."""
    groups = optimizer.param_groups
    COUNTED[id(optimizer)] = sum(each.numel() for group in groups for each in group["params"])
    RECORDER.facts = {"parameters": COUNTED[id(optimizer)]} if len(COUNTED) == 1 else {}


# As torch.compiler.disable, which would import Dynamo: under torch.compile the hook stays outside the graph.
_after_step._torchdynamo_disable = True


def watch_skipped_steps(module):
    """Wrap `GradScaler.step`, which does not call an optimizer whose gradients are infinite."""
    scaler_step = module.GradScaler.step

    @functools.wraps(scaler_step)
    def step(self, optimizer, *args, **kwargs):
        STEPPED.discard(id(optimizer))
        result = scaler_step(self, optimizer, *args, **kwargs)
        if id(optimizer) not in STEPPED:
            _after_step(optimizer, args, kwargs)
        return result

    module.GradScaler.step = step


def watch_graphs(module):
    """Wrap capture and replay of CUDA graphs: an optimizer inside one steps when the graph is replayed."""
    graph = module.CUDAGraph
    begin, end, replay = graph.capture_begin, graph.capture_end, graph.replay

    @functools.wraps(begin)
    def capture_begin(self, *args, **kwargs):
        CAPTURING.append(self)
        return begin(self, *args, **kwargs)

    @functools.wraps(end)
    def capture_end(self, *args, **kwargs):
        try:
            return end(self, *args, **kwargs)
        finally:
            CAPTURING.pop()

    @functools.wraps(replay)
    def replayed(self, *args, **kwargs):
        result = replay(self, *args, **kwargs)
        if id(self) in TRAINING_GRAPHS:
            RECORDER.step(id(self), _start)
        return result

    graph.capture_begin, graph.capture_end, graph.replay = capture_begin, capture_end, replayed


def _start():
    """Ask PyTorch for the clock, the rank and what trains; it is imported, and nothing is initialised."""
    torch = sys.modules["torch"]
    facts = {"source": _source(), "framework": "pytorch", "framework_version": str(torch.__version__)}
    clock, rank, world_size, facts = host_start(facts)
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        clock = probe.named_clock("cuda")
        facts.update(clock="cuda", device=torch.cuda.get_device_name())
    return clock, rank, world_size, facts


# The one nearest to the program comes first: Hugging Face's Trainer runs on Accelerate.
LIBRARIES = (
    ("transformers.trainer", "Hugging Face Trainer"),
    ("lightning.pytorch.trainer.trainer", "Lightning"),
    ("pytorch_lightning.trainer.trainer", "Lightning"),
    ("accelerate.accelerator", "Accelerate"),
    ("deepspeed", "DeepSpeed"),
)


def _source():
    library = next((title for name, title in LIBRARIES if name in sys.modules), None)
    return "PyTorch optimizer hook" + (" ({})".format(library) if library else "")


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


def watch_backward(module):
    """Wrap what `Tensor.backward` and `torch.autograd.grad` call (`backward` itself before PyTorch 2.1)."""
    name = "_engine_run_backward" if hasattr(module, "_engine_run_backward") else "backward"
    run = getattr(module, name)

    @functools.wraps(run)
    def watched(*args, **kwargs):
        RECORDER.backward()
        return run(*args, **kwargs)

    setattr(module, name, watched)


def watch_modes(module):
    """Wrap `Module.eval` and `Module.train`, which a module also calls for each of its children."""
    owner = module.Module
    begin, set_mode = owner.eval, owner.train

    @functools.wraps(begin)
    def evaluate(self):
        RECORDER.evaluates(id(self))
        return begin(self)

    @functools.wraps(set_mode)
    def train(self, mode=True):
        if mode:
            RECORDER.trains(id(self))
        return set_mode(self, mode)

    owner.eval, owner.train = evaluate, train


def watch_saves(module):
    """Wrap the function that writes a checkpoint."""
    name = "save_file" if hasattr(module, "save_file") else "save"  # of safetensors, and of PyTorch
    save = getattr(module, name)

    @functools.wraps(save)
    def watched(*args, **kwargs):
        begin = probe.now()
        try:
            return save(*args, **kwargs)
        finally:
            RECORDER.paused(CHECKPOINT, begin)

    setattr(module, name, watched)
