"""A stopwatch inside of a stranger, which shares nothing with Trainmark's hooks.

Each process writes a file of lines `KIND TIME` in monotonic seconds: `pass` when a backward pass has ended,
or Keras' train function on TensorFlow, or a line was printed that matches STRANGERS_LINE; `eval` and
`train` when a model changes its mode.
"""

import builtins
import functools
import os
import re
import sys
import time

FILES = {}


def note(kind):
    file = FILES.get(os.getpid())
    if file is None:
        name = os.path.join(os.environ["STRANGERS_FOLDER"], f"{os.getpid()}.times")
        file = FILES[os.getpid()] = open(name, "ab", buffering=0)
    file.write(f"{kind} {time.monotonic():.7f}\n".encode())


def noting(function, kind="pass"):
    @functools.wraps(function)
    def noted(*args, **kwargs):
        result = function(*args, **kwargs)
        note(kind)
        return result

    return noted


def watch_torch(torch):
    torch.autograd.backward = noting(torch.autograd.backward)  # Tensor.backward looks it up at each call
    change, outermost = torch.nn.Module.train, [True]

    @functools.wraps(change)
    def train(self, mode=True):
        if not outermost[0]:
            return change(self, mode)
        outermost[0] = False
        try:
            if mode or self.training:  # of several models, one may be put to train that never left it
                note("train" if mode else "eval")
            return change(self, mode)
        finally:
            outermost[0] = True

    torch.nn.Module.train = train


def keras_images():
    import numpy

    def part(count):
        return numpy.random.randint(0, 256, (count, 28, 28)).astype("uint8"), numpy.arange(count) % 10

    return part(1024), part(256)


def watch_keras(keras):
    keras.datasets.mnist.load_data = keras_images
    if keras.config.backend() != "tensorflow":
        return
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    make = TensorFlowTrainer.make_train_function

    @functools.wraps(make)
    def make_train_function(self, *args, **kwargs):
        before = self.train_function
        make(self, *args, **kwargs)
        if self.train_function is not before:
            self.train_function = noting(self.train_function)

    TensorFlowTrainer.make_train_function = make_train_function


def watch_tensorflow(tensorflow):
    tape = tensorflow.GradientTape
    tape.gradient = noting(tape.gradient)  # of a loop that runs eagerly


def watch_lines(pattern):
    for output in (sys.stdout, sys.stderr):
        output.write = _matching(output.write, re.compile(pattern))


def _matching(write, pattern):
    def written(text):
        if pattern.search(text):
            note("pass")
        return write(text)

    return written


WATCHES = {"torch": watch_torch, "keras": watch_keras, "tensorflow": watch_tensorflow}


def watching(original):
    @functools.wraps(original)
    def imported(*args, **kwargs):
        result = original(*args, **kwargs)
        for name in list(WATCHES):
            module = sys.modules.get(name)
            if module is not None and not getattr(module.__spec__, "_initializing", False):
                WATCHES.pop(name, id)(module)  # a watch imports too, and may come here before this one
        return result

    return imported


if os.environ.get("STRANGERS_LINE"):
    watch_lines(os.environ["STRANGERS_LINE"])
elif os.environ.get("STRANGERS_FOLDER"):
    builtins.__import__ = watching(builtins.__import__)
