"""Steps of a JAX program: calls of the compiled functions that take gradients.

A function under `jax.jit` whose tracing calls `jax.grad` or `jax.value_and_grad` trains; each of its calls
from outside is a step, over when its smallest result is ready that the next step does not take as its own
(a donated argument). A gradient that is taken outside `jit` is a step itself.
"""

import contextlib
import functools
import threading

from trainmark import probe
from trainmark.inside.hooks.recorder import Recorder, host_start


def _profiler():
    from trainmark.inside.profiler import jax

    return jax.Profiler()


RECORDER = Recorder("jax", _profiler)
TRAINING = set()  # names of the functions that take gradients
RESULTS = {}  # Results by the names of these functions
RUNNING = threading.local()


class Results:
    """Chooses the result that times a function's steps: the smallest that the next call does not delete."""

    def __init__(self):
        self._donated = set()
        self._number = self._array = None

    def choose(self, arrays):
        """Return one of them; that of the call before is deleted by now where it was a donated argument."""
        if self._array is not None and self._array.is_deleted():
            self._donated.add(self._number)
        self._number = min(
            range(len(arrays)), key=lambda number: (number in self._donated, arrays[number].size)
        )
        self._array = arrays[self._number]
        return self._array


def _wait(array):
    with contextlib.suppress(Exception):  # deleted, or its step failed, which the program hears of itself
        array.block_until_ready()
        with RECORDER.arriving():
            pass


def watch_jit(module):
    """Wrap `jit`, `pmap` and the gradients where programs take them from, the module `jax`."""
    for name in ("jit", "pmap"):
        setattr(module, name, _compiling(module, getattr(module, name)))
    for name in ("grad", "value_and_grad"):
        setattr(module, name, _differentiating(module, getattr(module, name)))


def _compiling(module, transform):
    @functools.wraps(transform)
    def wrapper(*args, **kwargs):
        compiled = transform(*args, **kwargs)
        if not args and "fun" not in kwargs and not hasattr(compiled, "lower"):
            return lambda function: Compiled(module, compiled(function), function)
        return Compiled(module, compiled, args[0] if args else kwargs.get("fun"))

    return wrapper


class Compiled:
    """A compiled function as the program would have it, which also counts."""

    def __init__(self, module, compiled, function):
        functools.update_wrapper(self, compiled)
        self._module = module
        self._compiled = compiled
        self._name = _name(function)

    def __call__(self, *args, **kwargs):
        outer = getattr(RUNNING, "name", None)
        if outer is not None:
            return self._compiled(*args, **kwargs)
        RUNNING.name = self._name
        try:
            result = self._compiled(*args, **kwargs)
        finally:
            RUNNING.name = None
        if self._name in TRAINING:
            _end_step(self._module, self._name, result)
        return result

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name):
        return getattr(self._compiled, name)

    def lower(self, *args, **kwargs):
        return self._compiled.lower(*args, **kwargs)

    def trace(self, *args, **kwargs):
        return self._compiled.trace(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        return self._compiled.eval_shape(*args, **kwargs)

    def clear_cache(self):
        return self._compiled.clear_cache()


def _differentiating(module, transform):
    @functools.wraps(transform)
    def wrapper(*args, **kwargs):
        gradient = transform(*args, **kwargs)
        name = _name(args[0] if args else kwargs.get("fun"))

        @functools.wraps(gradient)
        def watched(*inner_args, **inner_kwargs):
            outer = getattr(RUNNING, "name", None)
            if outer is not None:
                TRAINING.add(outer)
                return gradient(*inner_args, **inner_kwargs)
            RUNNING.name = name
            try:
                result = gradient(*inner_args, **inner_kwargs)
            finally:
                RUNNING.name = None
            _end_step(module, name, result)
            return result

        return watched

    return wrapper


def _name(function):
    """Tell a function from others, also where the program makes it anew in every step."""
    return id(getattr(function, "__code__", function))


def _end_step(module, name, result):
    arrays = [leaf for leaf in module.tree_util.tree_leaves(result) if hasattr(leaf, "block_until_ready")]
    # Under a transformation of the program's own, such as vmap, the results are tracers: nothing is computed.
    if arrays and not any(isinstance(array, module.core.Tracer) for array in arrays):
        ready = RESULTS.setdefault(name, Results()).choose(arrays)
        RECORDER.step(name, lambda: _start(module), ready=ready)


def _start(module):
    facts = {
        "source": "calls of JAX functions that take gradients",
        "framework": "jax",
        "framework_version": str(module.__version__),
        "device": module.devices()[0].device_kind,
    }
    _, _, _, facts = host_start(facts)
    clock = probe.LossClock(_wait, name="jax")
    return clock, module.process_index(), module.process_count(), dict(facts, clock=clock.name)
