"""`trainmark run -- PROGRAM` for programs of frameworks other than PyTorch, untouched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.machine.frameworks.installed import python_of

pytestmark = pytest.mark.usefixtures("installed_environments")

JAX = """
import jax, jax.numpy as jnp

def loss(weights, rows):
    return jnp.mean((rows @ weights) ** 2)

@jax.jit
def evaluate(weights, rows):
    return loss(weights, rows)

@jax.jit
def train(weights, rows):
    value, gradient = jax.value_and_grad(loss)(weights, rows)
    return weights - 0.1 * gradient, value

weights, rows = jnp.ones((8, 4)), jnp.ones((16, 8))
for step in range(60):
    weights, value = train(weights, rows)
    if step % 10 == 0:
        evaluate(weights, rows)
"""
KERAS = """
import numpy as np, keras
model = keras.Sequential([keras.layers.Dense(4)])
model.compile("sgd", "mse")
rows, targets = np.ones((70, 8), "float32"), np.ones((70, 4), "float32")
model.fit(rows, targets, batch_size=4, epochs=3, validation_data=(rows, targets), verbose=0)
"""

# The loop of Keras' guides: a tape around the model, eagerly or in a compiled function, and a validation.
TAPE = """
import numpy as np, tensorflow as tf, keras
model = keras.Sequential([keras.layers.Dense(4)])
optimizer = keras.optimizers.Adam()
rows, targets = np.ones((70, 8), "float32"), np.ones((70, 4), "float32")
batches = tf.data.Dataset.from_tensor_slices((rows, targets)).shuffle(70).batch(8).prefetch(1)
held_out = tf.data.Dataset.from_tensor_slices(rows).batch(8)

def train(rows, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(rows) - targets) ** 2)
    optimizer.apply(tape.gradient(loss, model.trainable_weights), model.trainable_weights)

train, evaluate = {wrap}(train), tf.function(model)
for epoch in range(3):
    for batch in batches:
        train(*batch)
    for batch in held_out:
        evaluate(batch)
"""


def events_of(folder: Path, framework: str, program: str) -> list[dict]:
    python = python_of(framework)
    if python is None:
        pytest.skip(f"{framework} is not installed here")
    (folder / "train.py").write_text(program, encoding="utf-8")
    words = ["run", "--repeats", "1", "--steps", "all", "--runs", "runs", "--name", "untouched"]
    command = [sys.executable, "-m", "trainmark", *words, "--", python, "train.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (stream,) = (folder / "runs/untouched").glob("trials/*/01/events/rank0.jsonl")
    return [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]


def test_a_call_of_a_jax_function_that_takes_gradients_is_a_step(tmp_path):
    start, *rest = events_of(tmp_path, "jax", JAX)
    assert start["facts"]["source"] == "calls of JAX functions that take gradients"
    assert (start["unit"], start["facts"]["clock"]) == ("steps", "jax")
    assert sum(event["event"] == "step" for event in rest) == 60


def test_the_batches_of_keras_fit_are_steps_and_its_validation_a_pause(tmp_path):
    start, *rest = events_of(tmp_path, "tensorflow", KERAS)
    assert start["facts"]["source"] == "Keras fit (tensorflow backend)"
    steps = [event for event in rest if event["event"] == "step"]
    assert [step["samples"] for step in steps] == ([4] * 17 + [2]) * 3
    assert sum(event["event"] == "eval" for event in rest) >= 4
    assert start["facts"]["samples"] == "counted in the batches of Keras fit"


@pytest.mark.parametrize("wrap", ["", "tf.function"])
def test_a_loop_around_a_gradient_tape_is_seen_at_its_optimizer(tmp_path, wrap):
    start, *rest = events_of(tmp_path, "tensorflow", TAPE.replace("{wrap}", wrap))
    assert start["facts"]["source"] == "Keras optimizers outside of fit (tensorflow backend)"
    assert start["facts"]["samples"] == "counted in the batches of tf.data"
    assert [event["samples"] for event in rest if event["event"] == "step"] == ([8] * 8 + [6]) * 3
    assert sum(event["event"] == "eval" for event in rest) == 4  # the last one has no step behind it
