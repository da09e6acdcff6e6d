"""A stand-in for nvidia-smi on a machine without one: the same words for the same options."""

from __future__ import annotations

import os
from pathlib import Path

# As a driver of 2018 prints them: no MIG, no event reasons, application clocks not supported.
ROWS = """\
{
    "index": "0", "name": "Tesla V100-SXM2-16GB", "uuid": "GPU-8a7b", "driver_version": "418.87.01",
    "memory.used": "11", "memory.total": "16130", "temperature.gpu": "41", "clocks.sm": "135",
    "clocks.max.sm": "1530", "clocks.applications.graphics": "[Not Supported]",
    "clocks.applications.memory": "[Not Supported]", "power.limit": "300.00",
    "persistence_mode": "Enabled", "ecc.mode.current": "Enabled",
    "ecc.errors.uncorrected.volatile.total": "[N/A]",
    "clocks_throttle_reasons.active": "0x0000000000000001",
    "gpu_uuid": "GPU-8a7b", "pid": "4711", "process_name": "python train.py, again", "used_memory": "[N/A]",
}
"""
SCRIPT = """\
#!/usr/bin/env python3
import sys
known = {rows}
asked = sys.argv[1].partition("=")[2].split(",")
unknown = [name for name in asked if name not in known]
if unknown:
    print('Field "%s" is not a valid field to query.\\n' % unknown[0])
    sys.exit(2)
print(", ".join(known[name] for name in asked))
"""
BROKEN = """\
#!/bin/sh
echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
exit 9
"""


def path_with_smi(folder: Path, script: str = SCRIPT.replace("{rows}", ROWS)) -> str:
    """A PATH on which nvidia-smi is this."""
    program = folder / "nvidia-smi"
    program.write_text(script)
    program.chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])
