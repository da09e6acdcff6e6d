"""What the fork server imports and reads once, so that no check has to."""

from __future__ import annotations

import numpy as np

from trainmark.machine.devices import known_peak_flops
from trainmark.server.ingest import check
from trainmark.workloads import registry

CHECK = check.check
registry.families()
known_peak_flops("", "")
# numpy imports its masked arrays at the first median.
np.median([1.0])
