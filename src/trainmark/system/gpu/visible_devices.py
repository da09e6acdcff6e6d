"""What CUDA_VISIBLE_DEVICES leaves of the GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def visible_indices(visible: str | None, uuids: Mapping[int, str]) -> Sequence[int]:
    """Return what CUDA makes of the variable: numbers or beginnings of UUIDs, up to the first unknown one."""
    if visible is None:
        return list(uuids)
    chosen: list[int] = []
    for entry in filter(None, (part.strip() for part in visible.split(","))):
        if re.fullmatch(r"\d+", entry):
            matches = [int(entry)] if int(entry) in uuids else []
        else:
            matches = [index for index, uuid in uuids.items() if uuid.startswith(entry)]
        if len(matches) != 1 or matches[0] in chosen:
            break
        chosen += matches
    return chosen
