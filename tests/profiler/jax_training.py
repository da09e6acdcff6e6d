"""A small convolutional net in JAX, profiled for four steps a pass; the arguments are the traces of both."""

import json
import sys

import jax
import jax.numpy as jnp

from trainmark.inside.profiler.jax import Profiler


def loss(weights, images, labels):
    hidden = jax.lax.conv_general_dilated(images, weights["kernel"], (1, 1), "SAME")
    features = jnp.maximum(hidden, 0).mean((2, 3))
    return ((features @ weights["dense"] - labels) ** 2).mean()


@jax.jit
def step(weights, images, labels):
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    return {name: weights[name] - 0.1 * gradients[name] for name in weights}, value


def main():
    weights = {"kernel": jnp.full((8, 3, 3, 3), 0.1), "dense": jnp.ones((8, 4))}
    images, labels = jnp.ones((4, 3, 16, 16)), jnp.ones((4, 4))
    weights, value = step(weights, images, labels)
    profiler = Profiler()
    passes = profiler.passes()
    for name, path in zip(passes, sys.argv[1:], strict=True):
        profiler.start(name)
        for number in range(4):
            with profiler.annotate(f"trainmark_step#{number}"):
                weights, value = step(weights, images, labels)
                float(value)
        profiler.stop(name, path)
    print(json.dumps({"passes": passes, "facts": profiler.facts(), "memory": profiler.memory()}))


main()
