"""Which hooks wait for which module, and the import finder that calls them once it is imported."""

import contextlib
import importlib.abc
import importlib.machinery
import os
import sys

from trainmark.inside.hooks.recorder import EVENTS_FOLDER

_WAITING = {}


def when_imported(name, call):
    """Call `call(module)` after the module of this name is executed; at once where it already is."""
    if name in sys.modules:
        call(sys.modules[name])
        return
    if not _WAITING:
        sys.meta_path.insert(0, _Finder())
    _WAITING.setdefault(name, []).append(call)


class _Finder(importlib.abc.MetaPathFinder):
    """Leaves the search to the finders behind it, and wraps the loader of what is waited for."""

    def find_spec(self, name, path=None, target=None):
        if name not in _WAITING:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    _call_after(spec.loader, _WAITING.pop(name))
                return spec
        return None


def _call_after(loader, calls):
    """Shadow the loader's `exec_module`; its type stays, since resources and inspection ask for it."""
    execute = loader.exec_module

    def execute_then_call(module):
        execute(module)
        for call in calls:
            try:
                call(module)
            except Exception as error:  # noqa: BLE001  an unknown version is not watched, and runs
                sys.stderr.write("trainmark: {} is not watched: {!r}\n".format(module.__name__, error))

    loader.exec_module = execute_then_call


# Files that tell a program in which the hooks never started from one that does not train.
STARTED, IMPORTED = "hooks-started", "hooks-imported"


def attach():
    """Wait for the frameworks to be imported; without a folder for events nothing is watched."""
    if not os.environ.get(EVENTS_FOLDER):
        return
    _leave_mark(STARTED)
    when_imported("torch.optim.optimizer", _pytorch_optimizer)
    when_imported("torch.autograd", _pytorch_backward)
    when_imported("torch.utils.data.dataloader", _pytorch_loader)
    for name in ("torch.autograd", "torch.nn.modules.module", "torch.serialization", "safetensors.torch"):
        when_imported(name, _pytorch_pauses)
    when_imported("torch.amp.grad_scaler", _grad_scaler)
    when_imported("torch.cuda.graphs", _cuda_graphs)
    when_imported("keras.src.callbacks.callback_list", _keras)
    when_imported("keras.src.trainers.epoch_iterator", _keras_epochs)
    when_imported("keras.src.optimizers.base_optimizer", _keras_optimizers)
    when_imported("tensorflow.python.eager.polymorphic_function.polymorphic_function", _tensorflow_functions)
    when_imported("tensorflow.python.data.ops.iterator_ops", _tensorflow_batches)
    when_imported("jax", _jax)


def _leave_mark(name):
    with contextlib.suppress(OSError), open(os.path.join(os.environ[EVENTS_FOLDER], name), "a") as file:
        file.write("\n")


# Each framework's file is read only in a program that imports the framework.


def _pytorch_optimizer(module):
    _leave_mark(IMPORTED)
    from trainmark.inside.hooks import pytorch, pytorch_by_hand

    pytorch.watch_optimizers(module)
    pytorch_by_hand.watch_optimizers(module)


def _pytorch_backward(module):
    from trainmark.inside.hooks import pytorch_by_hand

    pytorch_by_hand.watch_backward(module)


def _pytorch_loader(module):
    from trainmark.inside.hooks import pytorch

    pytorch.watch_loaders(module)


def _pytorch_pauses(module):
    from trainmark.inside.hooks import pytorch

    pytorch.WATCH[module.__name__](module)


def _grad_scaler(module):
    from trainmark.inside.hooks import pytorch

    pytorch.watch_skipped_steps(module)


def _cuda_graphs(module):
    from trainmark.inside.hooks import pytorch

    pytorch.watch_graphs(module)


def _keras(module):
    _leave_mark(IMPORTED)
    from trainmark.inside.hooks import keras

    keras.watch_callbacks(module)


def _keras_epochs(module):
    from trainmark.inside.hooks import keras

    keras.watch_epochs(module)


def _keras_optimizers(module):
    from trainmark.inside.hooks import keras_loops

    keras_loops.watch_optimizers(module)


def _tensorflow_functions(module):
    from trainmark.inside.hooks import keras_loops

    keras_loops.watch_functions(module)


def _tensorflow_batches(module):
    from trainmark.inside.hooks import keras_loops

    keras_loops.watch_batches(module)


def _jax(module):
    _leave_mark(IMPORTED)
    from trainmark.inside.hooks import jax

    jax.watch_jit(module)
