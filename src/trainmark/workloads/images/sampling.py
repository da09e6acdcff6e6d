"""Which images make which batch, and which window of each is taken: alike in every framework.

To train, a random resized crop and a flip in the order of the epoch; to evaluate, the centre of every
image once.
"""

import math
from collections import namedtuple

import numpy as np

from trainmark.workloads.common import chance

AREA = (0.08, 1.0)  # of the image, uniform; a recipe may begin with more
ASPECT = (3 / 4, 4 / 3)  # width by height, uniform in the logarithm
ATTEMPTS = 10
RESIZE = 256 / 224  # the shorter side before the centre is cut, by the side that is cut
MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
DEVIATION = (0.229 * 255, 0.224 * 255, 0.225 * 255)

LOG_ASPECT = (math.log(ASPECT[0]), math.log(ASPECT[1]))

PADDING = -1  # in place of an image, and its label, where there is none

# `left top width height`: what becomes the output, in pixels of the image, not always whole ones.
# `inside`: whether pixels beyond it are out of the filter's sight (cut, then resized: training) or not
# (resized, then cut: evaluation).
Window = namedtuple("Window", "left top width height flip inside")


def training_window(width, height, seed, epoch, index, least=AREA[0]):
    """The window of an image in an epoch: follows from these numbers alone."""
    draw = chance.uniforms(chance.key(seed, epoch, index, 1)).__next__
    flip = draw() < 0.5
    for _ in range(ATTEMPTS):
        area = width * height * (least + (AREA[1] - least) * draw())
        aspect = math.exp(LOG_ASPECT[0] + (LOG_ASPECT[1] - LOG_ASPECT[0]) * draw())
        wide, high = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        across, down = draw(), draw()
        if 0 < wide <= width and 0 < high <= height:
            left, top = int(across * (width - wide + 1)), int(down * (height - high + 1))
            return Window(left, top, wide, high, flip, True)
    return centre_window(width, height, flip)


def centre_window(width, height, flip=False):
    """Where no attempt fitted: the largest centred one whose aspect is allowed."""
    if width < ASPECT[0] * height:
        wide, high = width, min(height, max(1, round(width / ASPECT[0])))
    elif width > ASPECT[1] * height:
        wide, high = min(width, max(1, round(height * ASPECT[1]))), height
    else:
        wide, high = width, height
    return Window((width - wide) // 2, (height - high) // 2, wide, high, flip, True)


def evaluation_window(width, height, size):
    """Shorter side to `round(size · 256/224)`, the centre cut out: as one window of the original."""
    short = round(size * RESIZE)
    if width <= height:
        wide, high = short, max(size, short * height // width)
    else:
        wide, high = max(size, short * width // height), short
    left, top = round((wide - size) / 2), round((high - size) / 2)
    by_x, by_y = width / wide, height / high
    return Window(left * by_x, top * by_y, size * by_x, size * by_y, False, False)


def epoch_order(count, seed, epoch):
    """A permutation of the images for one epoch, from (seed, epoch) alone.

    Sorted by a hash of each index rather than shuffled by numpy: its generators may change between the
    versions that the frameworks pin.
    """
    keys = chance.bits(chance.key(seed, epoch), np.arange(count, dtype=np.uint64))
    return np.argsort(keys, kind="stable")


def steps_per_epoch(count, batch, world_size):
    return count // (batch * world_size)


def training_share(count, batch, rank, world_size):
    """(steps, batch) places in the epoch's order: full batches only, as many on every rank, none twice.

    A step's global batch is one run of the order, so that it holds the same images however many ranks
    share it.
    """
    steps = steps_per_epoch(count, batch, world_size)
    return np.arange(steps * batch * world_size).reshape(steps, world_size, batch)[:, rank]


def evaluation_share(count, rank, world_size):
    """The images that this rank evaluates: each exactly once over all ranks."""
    return np.arange(rank, count, world_size)


def evaluation_batches(count, batch, world_size):
    """How many batches every rank evaluates: as many on each, the last ones padded."""
    longest = -(-count // world_size)
    return -(-longest // batch)


def evaluation_images(count, batch, rank, world_size):
    """(batches, batch) images of this rank, PADDING where there is none."""
    share, batches = evaluation_share(count, rank, world_size), evaluation_batches(count, batch, world_size)
    padded = np.full(batches * batch, PADDING)
    padded[: len(share)] = share
    return padded.reshape(batches, batch)
