"""Softmax regression on ten noisy clusters, in numpy. Four lines are Trainmark's."""

import argparse

import numpy as np

from trainmark import probe

ROWS, FEATURES, CLASSES, RATE = 16384, 256, 10, 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    labels = random.integers(CLASSES, size=ROWS)
    centres = random.standard_normal((CLASSES, FEATURES), dtype=np.float32)
    rows = centres[labels] + 4 * random.standard_normal((ROWS, FEATURES), dtype=np.float32)
    weights = np.zeros((FEATURES, CLASSES), dtype=np.float32)

    run = probe.start(unit="rows", framework="numpy", framework_version=np.__version__)
    for step in range(options.steps):
        batch = random.integers(ROWS, size=options.batch)
        weights, loss = trained(weights, rows[batch], labels[batch])
        run.step(samples=len(batch), loss=loss, lr=RATE)
        if step % 20 == 0:
            print(f"step {step}: loss {loss:.4f}")
    run.end()


def trained(weights, rows, labels):
    """The weights after one step of gradient descent, and the cross-entropy before it."""
    scores = rows @ weights
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    error = odds / odds.sum(axis=1, keepdims=True)
    right = np.arange(len(labels)), labels
    loss = float(-np.log(error[right]).mean())
    error[right] -= 1
    return weights - RATE / len(labels) * (rows.T @ error), loss


if __name__ == "__main__":
    main()
