"""Tars as ImageNet has them: a tar of class tars, and a flat one, with pictures of our own."""

import io
import tarfile

from pictures_by_hand import encoded

CLASSES = ("n01440764", "n01443537", "n02105855")
PICTURE = encoded("JPEG")


def tar_of(files):
    """`files`: names and contents, in order."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def pictures_of(synset, count=4):
    # Different sizes: every picture has its own bytes.
    return [(f"{synset}_{number}.JPEG", encoded("JPEG", size=(20 + number, 16))) for number in range(count)]


def train_tar(classes=None):
    """`classes`: the files of each class."""
    classes = classes or {synset: pictures_of(synset) for synset in CLASSES}
    return tar_of([(f"{synset}.tar", tar_of(files)) for synset, files in classes.items()])


def validation_names(count=6):
    return [f"ILSVRC2012_val_{number:08}.JPEG" for number in range(1, count + 1)]


def validation_tar(count=6):
    return tar_of(
        [(name, encoded("JPEG", size=(40 + at, 30))) for at, name in enumerate(validation_names(count))]
    )


def validation_lines(count=6):
    return "".join(f"{CLASSES[number % 3]}\n" for number in range(count))
