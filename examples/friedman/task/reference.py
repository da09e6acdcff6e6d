"""The training in float64 with its gradients written out, over the batches of all ranks."""

import numpy as np
from friedman.task import problem


def losses(width, batch, steps, world_size):
    """Mean squared error of each step, before its update."""
    w1, b1, w2, b2 = (array.astype(np.float64) for array in problem.weights(width))
    momenta = [np.zeros_like(array) for array in (w1, b1, w2, b2)]
    values = []
    for step in range(steps):
        shares = [problem.rows(batch, 0, step, rank) for rank in range(world_size)]
        x = np.concatenate([share[0] for share in shares]).astype(np.float64)
        y = np.concatenate([share[1] for share in shares]).astype(np.float64)
        hidden = np.tanh(x @ w1 + b1)
        error = (hidden @ w2 + b2)[:, 0] - y
        values.append(float(np.mean(error**2)))
        output_gradient = 2 * error[:, None] / len(error)
        hidden_gradient = output_gradient @ w2.T * (1 - hidden**2)
        gradients = (
            x.T @ hidden_gradient,
            hidden_gradient.sum(axis=0),
            hidden.T @ output_gradient,
            output_gradient.sum(axis=0),
        )
        for weight, momentum, gradient in zip((w1, b1, w2, b2), momenta, gradients, strict=True):
            momentum *= problem.MOMENTUM
            momentum += gradient
            weight -= problem.RATE * momentum
    return values
