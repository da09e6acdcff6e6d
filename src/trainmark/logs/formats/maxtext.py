"""MaxText: `completed step: 5, seconds: 5.668, TFLOP/s/device: 134.9, Tokens/s/device: 8671.8, …`.

`total_weights` counts the tokens of a step over all devices, padding left out. The first two times are that
of compiling, and that of a step which was handed over before it was done: they are left out.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count

LINE = rb"completed step: (?![01],)(?P<step>\d+), seconds: (?P<seconds>%b), TFLOP/s/device: [\d.]+" % NUMBER

FORMAT = Format(
    name="maxtext",
    title="MaxText",
    framework="jax",
    sign=re.compile(rb"completed step: \d+, seconds: [\d.]+, TFLOP/s/device: "),
    step=re.compile(
        LINE
        + rb"(?:, Tokens/s/device: [\d.]+)?(?:, total_weights: (?P<step_samples>\d+))?"
        + rb"(?:, loss: (?P<loss>%b))?(?=[,\s])" % LOSS
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    settings=(count("world_size", rb"\bNum_devices: (?P<value>\d+)"),),
)
