"""Which devices are the same but for their name and the size of their memory."""

from __future__ import annotations

import re
from functools import lru_cache

# Makers, memory and the socketed form say nothing about speed that the model does not; PCIe boards, NVL and
# slices of a device are slower than it, so that these words stay.
MAKERS = "nvidia|tesla|geforce|google|intel|habana|amd|instinct|huawei|graphcore"
MAKER = re.compile(rf"(?<![\w.])(?:{MAKERS})\b", re.IGNORECASE)
TRADE_MARKS = re.compile(r"\((?:r|tm|c)\)|\b(?:\d+-core )?(?:cpu|processor)(?: @.*)?$", re.IGNORECASE)
IGNORED = re.compile(rf"(?<![\w.])(?:{MAKERS}|\d+ ?gb|sxm\d?|hbm\d?e?)\b")


@lru_cache
def family(device: str) -> str:
    """`v100` for `Tesla V100-SXM2-16GB`, `h100 pcie` for `NVIDIA H100 PCIe`."""
    return " ".join(re.split(r"[\s_-]+", IGNORED.sub(" ", device.lower()).strip(" -_")))


def short_name(device: str) -> str:
    """Return the model without its maker: `H200` for `NVIDIA H200`, `Xeon 8480` for `Intel(R) Xeon 8480`."""
    plain = TRADE_MARKS.sub("", device)
    return " ".join(MAKER.sub("", plain).split()) or device
