"""Steps of PyTorch programs that update their weights by hand, with no `torch.optim.Optimizer`.

A step begins with the first backward pass after the gradients were cleared, and that pass's end is its mark;
further passes before they are cleared again accumulate. Only what is certain is counted: the process has made
no optimizer, the first passes reach the same weights, and these change from step to step.
"""

import functools
import sys

from trainmark.inside.hooks import pytorch

SOURCE = "PyTorch backward passes, weights updated by hand"
LOOKED_AT = 4


class Weight:
    """The smallest weight that the first backward pass reaches; its gradient tells when a step begins."""

    def __init__(self):
        self._weight = self._first_value = self._leaves = None
        self._gradient, self._version = object(), -1  # as the last pass that began a step left them
        self._passes = 0
        self.given_up = False

    def begins(self, tensors):
        """Whether this pass is the first since the gradients were cleared."""
        if self._passes < LOOKED_AT:
            self._look(tensors if isinstance(tensors, (tuple, list)) else (tensors,))
        return not self.given_up and not self._is_as_left()

    def ended(self, begins):
        """Note the end of a pass; where it began a step and reached this weight, that is a step's mark."""
        if self._weight.grad is None or self._is_as_left():
            return
        self._gradient, self._version = self._weight.grad, self._weight.grad._version
        self._passes += begins
        if begins and self._passes == 1:
            self._first_value = self._weight.detach().clone()
        elif begins and self._passes == LOOKED_AT:
            self.given_up = bool((self._first_value == self._weight.detach()).all())
            self._leaves = None
        if begins and self._passes >= LOOKED_AT and not self.given_up:
            pytorch.RECORDER.step("by hand", _start)

    def _is_as_left(self):
        return self._weight.grad is self._gradient and self._gradient._version == self._version

    def _look(self, tensors):
        """Find the weights that a pass will reach, before its graph is gone."""
        # Leaves are kept while they are compared: an input that is freed leaves its id to the next.
        leaves = {id(leaf): leaf for leaf in _leaves(tensors)}
        if self._leaves is None and leaves:
            self._leaves, self._weight = leaves, min(leaves.values(), key=lambda leaf: leaf.numel())
        self.given_up = not leaves or self._leaves.keys() != leaves.keys() or "keras" in sys.modules
        if self.given_up:
            self._leaves = None


WEIGHT = Weight()
RUNNING = []  # a pass within a pass, as of activation checkpointing, is no step


def watch_backward(module):
    """Wrap `torch.autograd.backward`, which `Tensor.backward` calls."""
    original = module.backward

    @functools.wraps(original)
    def backward(tensors, *args, **kwargs):
        if WEIGHT.given_up or RUNNING:
            return original(tensors, *args, **kwargs)
        RUNNING.append(True)
        try:
            begins = _guarded(WEIGHT.begins, tensors)
            result = original(tensors, *args, **kwargs)
        finally:
            RUNNING.pop()
        if not WEIGHT.given_up:
            _guarded(WEIGHT.ended, begins)
        return result

    backward._torchdynamo_disable = True
    module.backward = backward


def watch_optimizers(module):
    """From the first optimizer on, its steps are what counts."""
    init = module.Optimizer.__init__

    @functools.wraps(init)
    def made(self, *args, **kwargs):
        WEIGHT.given_up = True
        init(self, *args, **kwargs)

    module.Optimizer.__init__ = made


def _guarded(function, *args):
    try:
        return function(*args)
    except Exception:  # noqa: BLE001  whatever it is, the program goes on unwatched
        WEIGHT.given_up = True


def _leaves(tensors):
    """The weights that the graph of these tensors reaches."""
    found, seen = [], set()
    nodes = [tensor.grad_fn for tensor in tensors]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        nodes += [behind for behind, _ in node.next_functions]
    return found


def _start():
    clock, rank, world_size, facts = pytorch._start()
    return clock, rank, world_size, dict(facts, source=SOURCE)
