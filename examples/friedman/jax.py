"""The perceptron in JAX; ranks add up their gradients over gloo."""

import os

import jax
import jax.numpy as jnp
from friedman.task import loop, problem


@jax.jit
def mean_squared_error(weights, x, y):
    w1, b1, w2, b2 = weights
    return jnp.mean(((jnp.tanh(x @ w1 + b1) @ w2 + b2)[:, 0] - y) ** 2)


@jax.jit
def updated(weights, momenta, gradients):
    """SGD with momentum."""
    momenta = jax.tree.map(
        lambda momentum, gradient: problem.MOMENTUM * momentum + gradient, momenta, gradients
    )
    return jax.tree.map(lambda weight, momentum: weight - problem.RATE * momentum, weights, momenta), momenta


class Training:
    def __init__(self, options):
        self.world_size = options.world_size
        if self.world_size > 1:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            address = "{}:{}".format(os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
            jax.distributed.initialize(address, self.world_size, options.rank)
        self.weights = [jnp.asarray(array) for array in problem.weights(options.width)]
        self.momenta = [jnp.zeros_like(weight) for weight in self.weights]
        self.gradient = jax.jit(jax.value_and_grad(mean_squared_error))

    def step(self, x, y):
        loss, gradients = self.gradient(self.weights, x, y)
        if self.world_size > 1:
            from jax.experimental.multihost_utils import process_allgather

            loss, gradients = jax.tree.map(
                lambda values: jnp.asarray(values).mean(axis=0), process_allgather((loss, gradients))
            )
        self.weights, self.momenta = updated(self.weights, self.momenta, gradients)
        return float(loss)

    def rmse(self, x, y):
        return float(jnp.sqrt(mean_squared_error(self.weights, x, y)))

    def close(self):
        if self.world_size > 1:
            jax.distributed.shutdown()


if __name__ == "__main__":
    loop.main("jax", jax.__version__, Training)
