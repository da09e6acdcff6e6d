"""A recurrent net under `lax.scan`: a step is thousands of small operations, whose overhead shows."""

import jax
import jax.numpy as jnp

BATCH, LENGTH, WIDTH, STEPS = 1, 4096, 4, 100_000


def loss(weights, rows):
    def cell(state, row):
        state = jnp.tanh(row @ weights["input"] + state @ weights["state"] + weights["bias"])
        return state, state.sum()

    last, sums = jax.lax.scan(cell, jnp.zeros((BATCH, WIDTH)), rows)
    return (sums**2).mean() + (last**2).mean()


@jax.jit
def step(weights, rows):
    value, gradients = jax.value_and_grad(loss)(weights, rows)
    return value, jax.tree_util.tree_map(
        lambda weight, gradient: weight - 0.01 * gradient, weights, gradients
    )


def main():
    first, second, third = jax.random.split(jax.random.PRNGKey(0), 3)
    weights = {
        "input": 0.1 * jax.random.normal(first, (WIDTH, WIDTH)),
        "state": 0.1 * jax.random.normal(second, (WIDTH, WIDTH)),
        "bias": jnp.zeros(WIDTH),
    }
    rows = jax.random.normal(third, (LENGTH, BATCH, WIDTH))
    for _ in range(STEPS):
        value, weights = step(weights, rows)
        float(value)


if __name__ == "__main__":
    main()
