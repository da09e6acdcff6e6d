"""Steps of a PyTorch program, by the hook that every optimizer calls after `step()`.

A step that GradScaler skips for infinite gradients was computed all the same, and counts. Where a CUDA graph
holds the optimizer, a replay is a step.
"""

import functools
import sys

from trainmark import probe
from trainmark.hooks.recorder import Recorder, host_start


def _profiler():
    from trainmark.profiler import pytorch

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
