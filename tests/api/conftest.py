"""Runs whose figures are chosen are written as the tests of the store write them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))
