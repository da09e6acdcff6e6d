"""A small net in TensorFlow, profiled for four steps a pass; the arguments are the traces of both passes."""

import json
import sys

import tensorflow as tf

from trainmark.inside.profiler.tensorflow import Profiler

kernel = tf.Variable(tf.fill((3, 3, 3, 8), 0.1))
dense = tf.Variable(tf.ones((8, 4)))


@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        features = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME")), (1, 2))
        loss = tf.reduce_mean((features @ dense - labels) ** 2)
    gradients = tape.gradient(loss, [kernel, dense])
    kernel.assign_sub(0.1 * gradients[0])
    dense.assign_sub(0.1 * gradients[1])
    return loss


def main():
    images, labels = tf.ones((4, 16, 16, 3)), tf.ones((4, 4))
    step(images, labels)
    profiler = Profiler()
    passes = profiler.passes()
    for name, path in zip(passes, sys.argv[1:], strict=True):
        profiler.start(name)
        for number in range(4):
            with profiler.annotate(f"trainmark_step#{number}"):
                float(step(images, labels))
        profiler.stop(name, path)
    print(json.dumps({"passes": passes, "facts": profiler.facts(), "memory": profiler.memory()}))


main()
