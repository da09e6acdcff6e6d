"""Every codec gives the same window: geometry exactly, pixels within a stated tolerance of Pillow's."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from noisy_picture import picture
from PIL import Image

from trainmark.workloads.images import jpeg, native, sampling

# Of 255, where the same pixels are decoded: rounding between two passes. Where the DCT shrinks the image
# before the filter does, the filters differ: the mean over an image.
CLOSE, CLOSE_SHRUNK = 2, 4


def decoded(codec, data, window, size) -> np.ndarray:
    out = np.full((size, size, 3), 77, np.uint8)
    codec.decode(data, lambda width, height: window(width, height), out)
    return out.astype(int)


def both(codec, data, window, size):
    return decoded(codec, data, window, size), decoded(jpeg.codec("pillow"), data, window, size)


def training(index):
    return lambda width, height: sampling.training_window(width, height, 0, 0, index)


def evaluation(size):
    return lambda width, height: sampling.evaluation_window(width, height, size)


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"subsampling": 1}, {"progressive": True}])
@pytest.mark.parametrize("shape", [(250, 187), (187, 250), (91, 63)])
def test_training_windows_are_pillows(codec, shape, options):
    data = picture(*shape, **options)
    for index in range(12):
        pixels, wanted = both(codec, data, training(index), 112)
        assert abs(pixels - wanted).max() <= CLOSE, index


@pytest.mark.parametrize("shape", [(250, 187), (187, 250), (91, 63)])
def test_evaluation_windows_are_pillows(codec, shape):
    pixels, wanted = both(codec, picture(*shape), evaluation(112), 112)
    assert abs(pixels - wanted).max() <= CLOSE


def test_a_window_of_twice_the_output_and_more_is_near_pillows(codec):
    for window in (evaluation(40), training(3)):
        pixels, wanted = both(codec, picture(500, 375), window, 40)
        assert abs(pixels - wanted).mean() <= CLOSE_SHRUNK


def test_grey_and_cmyk_become_red_green_and_blue(codec):
    for mode in ("L", "CMYK"):
        pixels, wanted = both(codec, picture(100, 80, mode=mode), evaluation(64), 64)
        assert abs(pixels - wanted).max() <= CLOSE + (mode == "CMYK"), mode


def test_one_pixel_fills_the_output(codec):
    pixels = decoded(codec, picture(1, 1, quality=100), training(0), 8)
    assert np.ptp(pixels.reshape(-1, 3), axis=0).max() == 0


def test_a_jpeg_cut_anywhere_is_undecodable_whatever_the_window(codec):
    data = picture(120, 90)
    for end in (0, 2, 3, 50, 200, len(data) // 2, len(data) - 2):
        with pytest.raises(jpeg.Undecodable):
            decoded(codec, data[:end], training(1), 32)


def test_no_byte_that_is_changed_ends_the_process(codec):
    data = bytearray(picture(64, 48))
    random = np.random.default_rng(1)
    for _ in range(300):
        changed = bytearray(data)
        for place in random.integers(3, len(data) - 2, 3):
            changed[place] = random.integers(0, 256)
        try:
            pixels = decoded(codec, bytes(changed), training(0), 16)
        except jpeg.Undecodable as error:
            assert str(error)
        else:
            assert pixels.shape == (16, 16, 3)


def test_a_png_of_eight_bits_is_read_and_others_are_named(codec):
    def saved(image, form, **options):
        buffer = io.BytesIO()
        image.save(buffer, form, **options)
        return buffer.getvalue()

    small = Image.fromarray(np.full((20, 30, 3), 90, np.uint8))
    assert (decoded(codec, saved(small, "PNG"), evaluation(8), 8) == 90).all()
    deep = Image.fromarray(np.full((20, 30), 40000, np.uint16))
    with pytest.raises(jpeg.Undecodable, match="not 8 bits"):
        decoded(codec, saved(deep, "PNG"), evaluation(8), 8)
    other = Image.fromarray(np.full((20, 30, 3), 10, np.uint8))
    moving = saved(small, "GIF", save_all=True, append_images=[other])
    with pytest.raises(jpeg.Undecodable, match="2 frames"):
        decoded(codec, moving, evaluation(8), 8)


def test_an_unknown_codec_is_named():
    with pytest.raises(jpeg.CodecMissing, match="no JPEG codec 'best'"):
        jpeg.codec("best")


def test_the_library_is_built_once_and_found_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TRAINMARK_JPEG_LIBRARY", raising=False)
    try:
        path = native.cached_library()
    except native.Unbuilt as error:
        pytest.skip(str(error))
    before = Path(path).stat().st_mtime_ns
    assert native.cached_library() == path
    assert Path(path).stat().st_mtime_ns == before
    assert list((tmp_path / "trainmark").iterdir()) == [Path(path)]


def test_without_a_compiler_the_next_codec_is_taken_and_the_reason_kept(tmp_path):
    program = (
        "from trainmark.workloads.images import jpeg\n"
        "try: jpeg.codec('native')\n"
        "except jpeg.CodecMissing as error: print(error)\n"
        "print(jpeg.codec().name)\n"
    )
    changed = {**os.environ, "CC": str(tmp_path / "none"), "XDG_CACHE_HOME": str(tmp_path)}
    changed.pop("TRAINMARK_JPEG_LIBRARY", None)
    done = subprocess.run([sys.executable, "-c", program], env=changed, capture_output=True, text=True)
    reason, name = done.stdout.splitlines()
    assert "cannot be compiled" in reason
    assert name in ("simplejpeg", "pillow")


def test_a_library_to_carry_needs_no_libjpeg(tmp_path):
    out = tmp_path / "jpeg.so"
    words = [sys.executable, "-m", "trainmark.workloads.images.native", str(out)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(done.stderr)
    assert b"libjpeg.so" not in out.read_bytes()
    assert native.JpegLibrary(str(out)).size(picture(31, 17)) == (31, 17)
