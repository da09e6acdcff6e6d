"""Which hooks wait for which module."""

import os

from trainmark.hooks.importing import when_imported
from trainmark.hooks.recorder import EVENTS_FOLDER


def attach():
    """Wait for the frameworks to be imported; without a folder for events nothing is watched."""
    if not os.environ.get(EVENTS_FOLDER):
        return
    when_imported("torch.optim.optimizer", _pytorch_optimizer)
    when_imported("torch.utils.data.dataloader", _pytorch_loader)
    when_imported("torch.amp.grad_scaler", _grad_scaler)
    when_imported("torch.cuda.graphs", _cuda_graphs)
    when_imported("keras.src.callbacks.callback_list", _keras)
    when_imported("keras.src.trainers.epoch_iterator", _keras_epochs)
    when_imported("jax", _jax)


# Each framework's file is read only in a program that imports the framework.


def _pytorch_optimizer(module):
    from trainmark.hooks import pytorch

    pytorch.watch_optimizers(module)


def _pytorch_loader(module):
    from trainmark.hooks import pytorch_loader

    pytorch_loader.watch_loaders(module)


def _grad_scaler(module):
    from trainmark.hooks import pytorch

    pytorch.watch_skipped_steps(module)


def _cuda_graphs(module):
    from trainmark.hooks import pytorch

    pytorch.watch_graphs(module)


def _keras(module):
    from trainmark.hooks import keras

    keras.watch_callbacks(module)


def _keras_epochs(module):
    from trainmark.hooks import keras

    keras.watch_epochs(module)


def _jax(module):
    from trainmark.hooks import jax

    jax.watch_jit(module)
