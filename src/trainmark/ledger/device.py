"""Which devices are the same but for their name and the size of their memory."""

from __future__ import annotations

import re

# Makers, memory and the socketed form say nothing about speed that the model does not; PCIe boards, NVL and
# slices of a device are slower than it, so that these words stay.
IGNORED = re.compile(r"(?<![\w.])(?:nvidia|tesla|geforce|google|intel|\d+ ?gb|sxm\d?|hbm\d?e?)\b")


def family(device: str) -> str:
    """`v100` for `Tesla V100-SXM2-16GB`, `h100 pcie` for `NVIDIA H100 PCIe`."""
    return " ".join(re.split(r"[\s_-]+", IGNORED.sub(" ", device.lower()).strip(" -_")))
