"""The host loader on real files: the same bytes however many threads, and no end that hangs."""

from __future__ import annotations

import gc
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy_picture import picture

from trainmark.data.files import RECORD, ImageDataset, SplitIndex, write_dataset, write_index
from trainmark.workloads.common import chance
from trainmark.workloads.images import dataset, host, jpeg, native, sampling

TRAIN, VAL = 23, 7
SIZE = 24


def write_set(root: Path, change=lambda split, number, data: data) -> Path:
    """Every image is a class of its own."""
    classes = tuple(f"c{number:02d}" for number in range(TRAIN))
    for split, count in {"train": TRAIN, "val": VAL}.items():
        rows, names = np.zeros(count, RECORD), [f"{classes[k]}/{split}{k}.JPEG" for k in range(count)]
        for number, name in enumerate(names):
            data = change(split, number, picture(48, 36, seed=number))
            (root / split / name).parent.mkdir(parents=True, exist_ok=True)
            (root / split / name).write_bytes(data)
            rows[number] = (number, 0, len(data), 0, len(data), number, zlib.crc32(data))
        write_index(root / split, SplitIndex(rows, tuple(names), tuple(names)))
    write_dataset(root, ImageDataset("folder", classes, {"train": TRAIN, "val": VAL}))
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("set"))


@pytest.fixture(autouse=True)
def no_thread_stays():
    yield
    gc.collect()
    assert not crew()


def crew() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("trainmark-images")]


def loader(root, split="train", batch=4, **options):
    return host.HostLoader(dataset.open_split(root, split), batch, SIZE, **options)


def snapshots(batches):
    return [(pixels.copy(), labels.copy()) for pixels, labels in batches]


def same(one, two) -> bool:
    return len(one) == len(two) and all(
        np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]) for a, b in zip(one, two, strict=True)
    )


def test_the_same_bytes_with_one_two_and_five_workers(root):
    first, *others = [snapshots(loader(root, workers=workers).training(2)) for workers in (1, 2, 5)]
    assert len(first) == TRAIN // 4
    assert all(same(first, other) for other in others)


def with_codec(root, codec, **options):
    try:
        return loader(root, workers=3, codec=codec, **options)
    except jpeg.CodecMissing as error:
        pytest.skip(f"{codec}: {error}")


@pytest.mark.parametrize("most_open", [2, 256], ids=["by path", "by descriptor"])
def test_whole_batches_by_the_decoders_own_threads_are_the_images_one_by_one(root, monkeypatch, most_open):
    monkeypatch.setattr(dataset, "MOST_OPEN", most_open)
    whole, single = with_codec(root, "native"), with_codec(root, "native")
    assert whole.drivers == 2
    single.drivers = 0
    assert same(snapshots(whole.training(5)), snapshots(single.training(5)))
    ours, theirs = (with_codec(root, "native", split="val") for _ in range(2))
    theirs.drivers = 0
    assert same(snapshots(ours.evaluation()), snapshots(theirs.evaluation()))


@given(
    width=st.integers(1, 4000),
    height=st.integers(1, 4000),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 500),
    index=st.integers(0, 2**31),
    size=st.integers(1, 600),
    least=st.floats(0.01, 1),
)
def test_the_decoder_draws_the_windows_that_python_draws(width, height, seed, epoch, index, size, least):
    try:
        library = native.load()
    except native.Unbuilt as error:
        pytest.skip(str(error))
    key = chance.key(seed, epoch)
    expected = sampling.training_window(width, height, seed, epoch, index, least)
    assert library.window(width, height, True, size, least, key, index) == tuple(expected)
    expected = sampling.evaluation_window(width, height, size)
    assert library.window(width, height, False, size, least, key, index) == tuple(expected)


def test_a_loader_cuts_as_large_a_part_as_it_is_told(root):
    whole, usual = loader(root, workers=1, least_area=1.0), loader(root, workers=1)
    in_python = loader(root, workers=1, least_area=1.0, codec="pillow")
    assert not same(snapshots(whole.training(0)), snapshots(usual.training(0)))
    for (pixels, _), (expected, _) in zip(
        snapshots(whole.training(0)), snapshots(in_python.training(0)), strict=True
    ):
        assert abs(pixels.astype(int) - expected).mean() < 4


def test_epochs_differ_in_order_and_in_crops(root):
    made = loader(root, workers=2)
    assert not same(snapshots(made.training(0)), snapshots(made.training(1)))


def test_a_pass_goes_on_from_any_batch(root):
    made = loader(root, workers=2)
    assert same(snapshots(made.training(1))[3:], snapshots(made.training(1, first=3)))


def test_evaluation_has_every_image_once_over_three_ranks_with_as_many_batches_on_each(root):
    labels = []
    for rank in range(3):
        batches = snapshots(loader(root, "val", batch=2, rank=rank, world_size=3).evaluation())
        assert len(batches) == 2
        labels += [label for _, each in batches for label in each.tolist()]
        for pixels, each in batches:
            assert (pixels[each == -1] == 0).all()
    assert sorted(label for label in labels if label >= 0) == list(range(VAL))


def test_a_batch_stays_until_two_more_were_asked_for(root):
    passing = loader(root, batch=2, workers=2).training(0)
    given, copies = [], []
    for pixels, labels in passing:
        given.append((pixels, labels))
        copies.append((pixels.copy(), labels.copy()))
        assert same(given[-2:], copies[-2:])


def test_training_and_evaluation_may_be_interleaved(root):
    made = loader(root, batch=2, workers=2)
    alone = snapshots(made.training(0))
    passing = made.training(0)
    begun = [tuple(part.copy() for part in next(passing)) for _ in range(3)]
    snapshots(made.evaluation())
    assert same(alone, begun + snapshots(passing))


def test_buffers_come_from_whoever_allocates_them(root):
    made = []

    def allocate(shape, dtype):
        made.append(np.zeros(shape, dtype))
        return made[-1]

    for pixels, labels in loader(root, batch=2, workers=2, allocate=allocate).training(0):
        assert any(pixels is each for each in made) and any(labels is each for each in made)
    assert len(made) <= 2 * (host.AHEAD + host.BATCHES_IN_USE + 2)


def test_a_pass_dropped_half_way_leaves_no_thread(root):
    passing = loader(root, workers=3).training(0)
    next(passing)
    assert crew()
    del passing
    gc.collect()
    assert not crew()


def test_close_ends_every_pass(root):
    made = loader(root, workers=2)
    passes = [made.training(0), made.evaluation()]
    for each in passes:
        next(each)
    made.close()
    assert not crew()
    assert [list(each) for each in passes] == [[], []]


BAD = 5


@pytest.fixture(params=["cut", "gone", "noise"])
def damaged(request, tmp_path):
    def change(split, number, data):
        if number != BAD:
            return data
        return data[: len(data) // 2] if request.param == "cut" else b"no image at all"

    root = write_set(tmp_path, change)
    if request.param == "gone":
        for split in ("train", "val"):
            (root / split / f"c{BAD:02d}" / f"{split}{BAD}.JPEG").unlink()
    return root


def test_a_bad_image_stops_the_pass_and_is_named(damaged):
    with pytest.raises(dataset.BadImage, match=rf"train image {BAD} \(c05/train5.JPEG\)"):
        list(loader(damaged, workers=2, batch=TRAIN).training(0))


def test_a_bad_image_is_skipped_counted_and_replaced_by_the_next(damaged):
    made = loader(damaged, workers=2, batch=TRAIN, on_bad="skip")
    ((_, labels),) = snapshots(made.training(0))
    assert BAD not in labels
    assert sorted(labels.tolist()).count(BAD + 1) == 2
    assert made.bad == 1
    assert list(made.bad_names) == ["c05/train5.JPEG"]


def test_a_bad_image_is_not_replaced_in_evaluation(damaged):
    made = loader(damaged, "val", batch=VAL, on_bad="skip")
    ((_, labels),) = snapshots(made.evaluation())
    assert sorted(labels.tolist()) == [-1, 0, 1, 2, 3, 4, 6]
    assert made.bad == 1


def test_a_set_of_bad_images_only_is_an_error_and_no_loop(tmp_path):
    root = write_set(tmp_path, lambda split, number, data: b"nothing")
    with pytest.raises(dataset.BadImage, match="nor can any other"):
        list(loader(root, workers=2, on_bad="skip").training(0))


@pytest.mark.parametrize("codec", jpeg.CODECS)
def test_whatever_a_worker_raises_reaches_the_caller(root, codec):
    made = with_codec(root, codec)

    def broken(*_):
        raise MemoryError("no more")

    made.codec.decode = made.codec.batch = broken
    with pytest.raises(MemoryError, match="no more"):
        list(made.training(0))


def test_a_label_outside_the_classes_is_refused(tmp_path):
    root = write_set(tmp_path)
    rows = np.load(root / "train" / "index.npy")
    rows["label"][3] = TRAIN
    np.save(root / "train" / "index.npy", rows)
    with pytest.raises(
        dataset.UnfitImages, match=r"1 labels lie outside the 23 classes, first 23 of c03/train3"
    ):
        dataset.open_split(root, "train")


def test_a_folder_that_is_no_set_and_a_wrong_format_are_told_what_to_do(tmp_path, root):
    with pytest.raises(dataset.UnfitImages, match=r"no dataset\.json"):
        dataset.open_split(tmp_path, "train")
    with pytest.raises(dataset.UnfitImages, match=r"data convert .* --to rec"):
        dataset.require_format(root, "rec")


def test_records_in_shards_are_read_by_their_place(tmp_path):
    images = [picture(20, 16, seed=seed) for seed in range(3)]
    rows, at = np.zeros(3, RECORD), 0
    for number, data in enumerate(images):
        rows[number] = (0, at, len(data) + 8, at + 8, len(data), 0, 0)
        at += len(data) + 8
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "part").write_bytes(b"".join(b"headhead" + data for data in images))
    write_index(tmp_path / "train", SplitIndex(rows, ("part",), ("a/0", "a/1", "a/2")))
    write_dataset(tmp_path, ImageDataset("ofrecord", ("a",), {"train": 3}))
    split = dataset.open_split(tmp_path, "train")
    assert [split.read(number) for number in range(3)] == images
    split.close()
