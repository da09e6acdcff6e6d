"""Where the classes of the validation images come from."""

import gzip
import io

import pytest
from imagenet_tars import CLASSES, tar_of
from scipy.io import savemat

from trainmark.base.errors import UserError
from trainmark.data.imagenet_labels import read_labels


def devkit(truth, compressed=True, synsets=CLASSES):
    import numpy as np

    kinds = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O"), ("children", "O")]
    table = np.array(
        [(float(at), name, f"word {at}", np.arange(at)) for at, name in enumerate(synsets, 1)], dtype=kinds
    )
    meta = io.BytesIO()
    savemat(meta, {"synsets": table.reshape(-1, 1)}, do_compression=compressed)
    folder = "ILSVRC2012_devkit_t12/data"
    lines = "".join(f"{number}\n" for number in truth).encode()
    return gzip.compress(
        tar_of(
            [
                (f"{folder}/meta.mat", meta.getvalue()),
                (f"{folder}/ILSVRC2012_validation_ground_truth.txt", lines),
            ]
        )
    )


@pytest.fixture
def labels(tmp_path):
    def read(content):
        path = tmp_path / "labels"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_labels(path)

    return read


def test_a_line_is_the_synset_of_the_image_of_that_number(labels):
    assert labels("n00000002\nn00000001\n").of("ILSVRC2012_val_00000002.JPEG") == "n00000001"


def test_a_line_may_name_its_image(labels):
    assert (
        labels("ILSVRC2012_val_00000007.JPEG n00000001\n").of("x/ILSVRC2012_val_00000007.JPEG") == "n00000001"
    )


def test_kaggle_s_table_is_read(labels):
    table = "ImageId,PredictionString\nILSVRC2012_val_00048981,n03995372 85 1 499 272 n03995372 1 1 2 2 \n"
    assert labels(table).of("ILSVRC2012_val_00048981.JPEG") == "n03995372"


@pytest.mark.parametrize("compressed", [True, False])
def test_the_devkit_is_read_without_matlab(labels, compressed):
    ground_truth = labels(devkit([3, 1, 2], compressed))
    assert [ground_truth.synsets[number] for number in (1, 2, 3)] == [CLASSES[2], CLASSES[0], CLASSES[1]]


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        (b"", "is empty"),
        (b"490\n361\n", "give the devkit"),
        (b"n01440764\ncat\n", ":2: 'cat' is no synset"),
        (b"ImageId,PredictionString\nILSVRC2012_val_00000001,\n", ":2:"),
        (b"\xff\xfe\0\0\x01", "is no text"),
        (gzip.compress(b"nothing", mtime=0), "no devkit"),
        (gzip.compress(tar_of([("a", b"b")]), mtime=0), "has no meta.mat"),
        (devkit([1, 4]), "line 2"),
        (devkit([1])[:200], "no devkit"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(labels, content, phrase):
    with pytest.raises(UserError, match=r"\.$") as refused:
        labels(content)
    assert phrase in str(refused.value)
