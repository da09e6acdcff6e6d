"""What tells training from evaluation in a PyTorch program: backward passes, modes of modules, checkpoints.

Nothing of it is called for an operation: once for a backward pass, a change of mode, a file.
"""

import functools

from trainmark import probe
from trainmark.hooks.pytorch import RECORDER
from trainmark.hooks.recorder import CHECKPOINT


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


WATCH = {
    "torch.autograd": watch_backward,
    "torch.nn.modules.module": watch_modes,
    "torch.serialization": watch_saves,
    "safetensors.torch": watch_saves,
}
