"""Which hooks wait for which module, and the import finder that calls them once it is imported."""

import contextlib
import functools
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
# Of a module that is waited for: functions of our files, called with it until one fails. Each of our files is
# read only in a program that imports the framework.
HOOKS = (
    ("torch.optim.optimizer", "pytorch.watch_optimizers", "pytorch_by_hand.watch_optimizers"),
    ("torch.autograd", "pytorch_by_hand.watch_backward"),
    ("torch.utils.data.dataloader", "pytorch.watch_loaders"),
    ("torch.autograd", "pytorch.watch_backward"),
    ("torch.nn.modules.module", "pytorch.watch_modes"),
    ("torch.serialization", "pytorch.watch_saves"),
    ("safetensors.torch", "pytorch.watch_saves"),
    ("torch.amp.grad_scaler", "pytorch.watch_skipped_steps"),
    ("torch.cuda.graphs", "pytorch.watch_graphs"),
    ("keras.src.callbacks.callback_list", "keras.watch_callbacks"),
    ("keras.src.trainers.epoch_iterator", "keras.watch_epochs"),
    ("keras.src.optimizers.base_optimizer", "keras_loops.watch_optimizers"),
    ("tensorflow.python.eager.polymorphic_function.polymorphic_function", "keras_loops.watch_functions"),
    ("tensorflow.python.data.ops.iterator_ops", "keras_loops.watch_batches"),
    ("jax", "jax.watch_jit"),
)
# What a program imports that may train.
TRAINERS = ("torch.optim.optimizer", "keras.src.callbacks.callback_list", "jax")


def attach():
    """Wait for the frameworks to be imported; without a folder for events nothing is watched."""
    if not os.environ.get(EVENTS_FOLDER):
        return
    _leave_mark(STARTED)
    for name in TRAINERS:
        when_imported(name, lambda module: _leave_mark(IMPORTED))
    for name, *hooks in HOOKS:
        when_imported(name, functools.partial(_call, hooks))


def _call(hooks, module):
    for hook in hooks:
        file, function = hook.split(".")
        getattr(importlib.import_module("trainmark.inside.hooks." + file), function)(module)


def _leave_mark(name):
    with contextlib.suppress(OSError), open(os.path.join(os.environ[EVENTS_FOLDER], name), "a") as file:
        file.write("\n")
