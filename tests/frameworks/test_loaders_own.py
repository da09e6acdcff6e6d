"""Each framework's own pipeline, for real: the same crops by their distribution, every image as often.

The images carry their coordinates, so the box that a loader cut is read back from its pixels. Seeds are
fixed; the two loaders that do not follow from them are tested at the same level, which chance alone fails
once in ten thousand.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

sys.path.insert(0, str(Path(__file__).parents[1] / "images"))

import coordinate_set

from trainmark.machine.frameworks.installed import python_of, standing
from trainmark.workloads.images import sampling

pytestmark = pytest.mark.usefixtures("installed_environments")

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
TRAIN, VAL, BATCH, SIZE = 1600, 21, 16, 32
LEVEL = 1e-4
REFERENCE = 20_000
FORMATS = {
    "pytorch": "folder",
    "paddle": "folder",
    "tensorflow": "tfrecord",
    "mxnet": "rec",
    "mindspore": "mindrecord",
    "oneflow": "ofrecord",
}
ENDLESS = "oneflow"  # its reader knows no epochs
LIMIT = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return coordinate_set.make(tmp_path_factory.mktemp("coordinates") / "folder", TRAIN, VAL)


@pytest.fixture(scope="module")
def reference():
    rows = []
    for index in range(REFERENCE):
        sides = (coordinate_set.LONG, coordinate_set.SHORT)
        width, height = sides if index % 2 == 0 else sides[::-1]
        window = sampling.training_window(width, height, 99, 0, index)
        place = (window.left / width, window.top / height, window.width / width, window.height / height)
        rows.append((*place, window.flip, index % 2))
    return np.array(rows, float)


@pytest.fixture(scope="module", params=FORMATS)
def given(request, folder):
    """The name of the framework, and what its pipeline gave."""
    name = request.param
    python = python_of(name)
    if python is None:
        pytest.skip(f"{name} is not installed: {standing(name)[1] or 'trainmark frameworks install ' + name}")
    if (
        name in ("pytorch", "paddle")
        and subprocess.run([python, "-c", "import PIL"], capture_output=True).returncode
    ):
        pytest.skip(f"the environment of {name} has no Pillow")
    root = _converted(folder, FORMATS[name])
    out = folder.parent / f"{name}.npz"
    path = os.pathsep.join([str(SOURCE), str(HERE.parent / "images")])
    done = subprocess.run(
        [python, str(HERE / "loader_program.py"), name, str(root), str(out), "1"],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return name, np.load(out)


def _converted(folder: Path, to: str) -> Path:
    if to == "folder":
        return folder
    from trainmark.data.convert import ConvertRequest, convert

    target = folder.parent / to
    convert(ConvertRequest(folder, target, to))
    return target


def shapes(boxes: np.ndarray) -> dict[str, np.ndarray]:
    sides = np.array([coordinate_set.LONG, coordinate_set.SHORT])
    width = np.where(boxes[:, 5] > 0, sides[1], sides[0])
    return {
        "area": boxes[:, 2] * boxes[:, 3],
        "aspect": boxes[:, 2] * width / (boxes[:, 3] * (sides.sum() - width)),
    }


def test_area_and_aspect_of_its_crops_are_distributed_as_ours(given, reference):
    measured, wanted = shapes(given[1]["boxes"]), shapes(reference)
    for kind in wanted:
        assert ks_2samp(measured[kind], wanted[kind]).pvalue > LEVEL, kind


def test_its_crops_lie_anywhere_and_are_no_few_that_come_again(given):
    boxes = given[1]["boxes"]
    spread = 0.5 / math.sqrt(len(boxes))
    assert abs((boxes[:, 0] + boxes[:, 2] / 2).mean() - 0.5) < spread
    assert abs((boxes[:, 1] + boxes[:, 3] / 2).mean() - 0.5) < spread
    assert len(np.unique(boxes.round(3), axis=0)) > 0.9 * len(boxes)


def test_it_flips_one_of_two(given):
    flips = given[1]["boxes"][:, 4]
    assert abs(flips.mean() - 0.5) < 4 * 0.5 / math.sqrt(len(flips))


def test_an_epoch_has_every_image_once(given):
    name, arrays = given
    (labels,) = arrays["labels"]
    assert len(labels) == TRAIN
    assert len(set(labels)) >= (0.9 * TRAIN if name == ENDLESS else TRAIN)


def test_it_repeats_where_it_says_so_and_goes_on_from_any_batch(given):
    _, arrays = given
    assert arrays["repeated"] == 0 or not arrays["repeatable"]
    assert len(arrays["resumed"]) == TRAIN - 3 * BATCH
    if arrays["repeatable"]:
        assert np.array_equal(arrays["resumed"], arrays["labels"][0][3 * BATCH :])


def test_evaluation_has_every_image_exactly_once_on_one_rank_and_over_two(given):
    name, arrays = given
    assert sorted(arrays["evaluated"][arrays["evaluated"] >= 0]) == list(range(VAL))
    assert len(arrays["evaluated"]) % BATCH == 0
    if name != ENDLESS:
        over = arrays["rank_evaluated"]
        assert sorted(over[over >= 0]) == list(range(VAL))
        assert len(set(arrays["rank_training"].reshape(-1))) == TRAIN


def test_evaluation_takes_the_centre(given):
    _, arrays = given
    for shape, sides in enumerate([(coordinate_set.LONG, coordinate_set.SHORT)] * 2):
        width, height = sides if shape == 0 else sides[::-1]
        window = sampling.evaluation_window(width, height, SIZE)
        wanted = [window.left / width, window.top / height, window.width / width, window.height / height]
        rows = arrays["evaluation"][(arrays["evaluated"] >= 0) & (arrays["evaluation"][:, 5] == shape)]
        assert np.abs(rows[:, :4] - wanted).max() < 0.03
        assert not rows[:, 4].any()
