"""Train four convolutions on random images in JAX: `trainmark explain -- python train.py`."""

import jax
from jax import lax, nn, random

LAYERS, CHANNELS, CLASSES, IMAGES, SIDE = 4, 32, 10, 32, 48


def logits(weights, images):
    for kernel in weights["convolutions"]:
        layout = ("NHWC", "HWIO", "NHWC")
        images = nn.relu(lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout))
    return images.mean((1, 2)) @ weights["head"]


def loss(weights, images, labels):
    return -(nn.log_softmax(logits(weights, images)) * labels).sum(-1).mean()


@jax.jit
def step(weights, images, labels):
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    return value, jax.tree_util.tree_map(lambda weight, slope: weight - 0.01 * slope, weights, gradients)


def main():
    keys = random.split(random.PRNGKey(0), 2 + LAYERS)
    shapes = [(3, 3, 3 if layer == 0 else CHANNELS, CHANNELS) for layer in range(LAYERS)]
    weights = {
        "convolutions": [
            0.05 * random.normal(key, shape) for key, shape in zip(keys[2:], shapes, strict=True)
        ],
        "head": 0.1 * random.normal(keys[1], (CHANNELS, CLASSES)),
    }
    images = random.normal(keys[0], (IMAGES, SIDE, SIDE, 3))
    labels = nn.one_hot(jax.numpy.arange(IMAGES) % CLASSES, CLASSES)
    for _ in range(2000):
        value, weights = step(weights, images, labels)
        float(value)


if __name__ == "__main__":
    main()
