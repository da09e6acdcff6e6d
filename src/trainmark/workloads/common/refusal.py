"""How a program says no, and the tables that say when.

A row of a table is [frameworks, conditions, sentence], "*" being every framework. A condition is the name of
an option or of something that the machine has, and what its value must be: true or false for whether there is
any, a list for one of several, "!sgd" for any other, "<7.0" for a lower compute capability, else the value.
"""

import json

NAMES = ("JAX", "MindSpore", "MXNet", "OneFlow", "Paddle", "PyTorch", "TensorFlow")
TITLES = {name.lower(): name for name in NAMES}
REFUSED = 3  # exit code of a program that cannot do what was asked on this device
TF32 = "tf32 needs an NVIDIA GPU of compute capability 8.0 or later; use fp32."
BF16 = "bf16 needs compute capability 8.0 or later on NVIDIA; use amp."
CUDA_GRAPH = "a CUDA graph needs a CUDA device; leave cuda_graph out."
# What a device can do in no framework.
HARDWARE = [
    [["*"], {"precision": "tf32", "device": "cpu"}, TF32],
    [["*"], {"precision": "tf32", "capability": "<8.0"}, TF32],
    [["*"], {"precision": "bf16", "capability": "<8.0"}, BF16],
    [["*"], {"cuda_graph": True, "device": "cpu"}, CUDA_GRAPH],
]


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """What was asked cannot be had here; the message is one sentence that says why and what to use."""


def read_table(path):
    with open(path) as file:
        return json.load(file)


def check(table, **asked):
    """Raise Refusal by the first row all of whose conditions hold, those of every device first."""
    for frameworks, conditions, sentence in HARDWARE + table:
        if {"*", asked["framework"]}.intersection(frameworks) and all(
            _holds(asked[name], wanted) for name, wanted in conditions.items()
        ):
            raise Refusal(sentence.format(**asked))


def check_machine(table, framework, opt, capability=None, **machine):
    """Refuse what cannot be had here; `capability` is that of the GPU, None where none is used.

    Rows name options, fields of the recipe, and what else `machine` has.
    """
    asked = dict(vars(opt.recipe), **vars(opt))
    asked.update(machine, framework=framework, title=TITLES[framework], several_ranks=opt.world_size > 1)
    check(table, capability=capability, **asked)


def _holds(value, wanted):
    if isinstance(wanted, bool):
        return bool(value) == wanted
    if isinstance(wanted, list):
        return value in wanted
    if wanted.startswith("<"):
        return value is not None and tuple(value) < tuple(map(int, wanted[1:].split(".")))
    return value != wanted[1:] if wanted.startswith("!") else value == wanted
