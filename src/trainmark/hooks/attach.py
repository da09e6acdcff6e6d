"""Which hooks wait for which module."""

import contextlib
import os

from trainmark.hooks.importing import when_imported
from trainmark.hooks.recorder import EVENTS_FOLDER

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
    from trainmark.hooks import pytorch, pytorch_by_hand

    pytorch.watch_optimizers(module)
    pytorch_by_hand.watch_optimizers(module)


def _pytorch_backward(module):
    from trainmark.hooks import pytorch_by_hand

    pytorch_by_hand.watch_backward(module)


def _pytorch_loader(module):
    from trainmark.hooks import pytorch_loader

    pytorch_loader.watch_loaders(module)


def _pytorch_pauses(module):
    from trainmark.hooks import pytorch_pauses

    pytorch_pauses.WATCH[module.__name__](module)


def _grad_scaler(module):
    from trainmark.hooks import pytorch

    pytorch.watch_skipped_steps(module)


def _cuda_graphs(module):
    from trainmark.hooks import pytorch

    pytorch.watch_graphs(module)


def _keras(module):
    _leave_mark(IMPORTED)
    from trainmark.hooks import keras

    keras.watch_callbacks(module)


def _keras_epochs(module):
    from trainmark.hooks import keras

    keras.watch_epochs(module)


def _keras_optimizers(module):
    from trainmark.hooks import keras_loops

    keras_loops.watch_optimizers(module)


def _tensorflow_functions(module):
    from trainmark.hooks import keras_loops

    keras_loops.watch_functions(module)


def _tensorflow_batches(module):
    from trainmark.hooks import keras_loops

    keras_loops.watch_batches(module)


def _jax(module):
    _leave_mark(IMPORTED)
    from trainmark.hooks import jax

    jax.watch_jit(module)
