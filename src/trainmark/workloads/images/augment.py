"""Which part of an image is taken: a random resized crop and a flip to train, the centre to evaluate."""

import math
from collections import namedtuple

from trainmark.workloads.common import chance

AREA = (0.08, 1.0)  # of the image, uniform; a recipe may begin with more
ASPECT = (3 / 4, 4 / 3)  # width by height, uniform in the logarithm
ATTEMPTS = 10
RESIZE = 256 / 224  # the shorter side before the centre is cut, by the side that is cut
MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
DEVIATION = (0.229 * 255, 0.224 * 255, 0.225 * 255)

LOG_ASPECT = (math.log(ASPECT[0]), math.log(ASPECT[1]))

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
