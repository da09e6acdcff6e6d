"""The format of a file, recognised by its bytes; Pillow writes the files."""

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures_by_hand import animated, deep_png, encoded
from PIL import Image, ImageFile

from trainmark.data import picture as pictures
from trainmark.data.picture import (
    ALL_DEFECTS,
    MOST_FRAMES,
    PICTURE_DEFECTS,
    PictureDefect,
    picture_defects,
    picture_header,
)

KINDS = {
    "jpeg": encoded("JPEG"),
    "progressive": encoded("JPEG", progressive=True, quality=95),
    "png": encoded("PNG"),
    "gif": encoded("GIF"),
    "webp": encoded("WEBP"),
    "lossless": encoded("WEBP", lossless=True),
    "bmp": encoded("BMP"),
    "tiff": encoded("TIFF"),
    "cmyk": encoded("JPEG", "CMYK"),
    "deep": deep_png(),
    "gif that moves": animated("GIF"),
    "webp that moves": animated("WEBP"),
    "png that moves": animated("PNG"),
    "tiff with pages": animated("TIFF"),
}


@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp", "bmp", "tiff"])
def test_format_and_size_are_told(kind):
    header = picture_header(KINDS[kind])
    assert (header.format, header.width, header.height, header.whole) == (kind, 24, 16, True)


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("jpeg", []),
        ("progressive", []),
        ("png", ["not-jpeg"]),
        ("lossless", ["not-jpeg"]),
        ("cmyk", ["cmyk"]),
        ("deep", ["deep", "not-jpeg"]),
        ("gif that moves", ["animated", "not-jpeg"]),
        ("webp that moves", ["animated", "not-jpeg"]),
        ("png that moves", ["animated", "not-jpeg"]),
        ("tiff with pages", ["animated", "not-jpeg"]),
    ],
)
def test_what_is_unusual_is_named(kind, codes):
    assert picture_defects(KINDS[kind]) == codes


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_anywhere_is_a_truncation_or_no_picture_at_all(kind):
    whole = KINDS[kind]
    for length in range(1, len(whole) - 4):
        # Some formats end in padding, which nobody misses.
        assert {"truncated", "not-a-picture"} & set(picture_defects(whole[:length])), length


def test_a_file_without_bytes_is_empty():
    assert picture_defects(b"") == ["empty"]


def test_text_is_no_picture_whatever_its_name():
    assert picture_defects(b"<html>404 not found</html>") == ["not-a-picture"]


def test_one_pixel_is_named():
    assert picture_defects(encoded("JPEG", size=(1, 1))) == ["one-pixel"]


def test_a_grey_jpeg_is_a_sound_one():
    grey = encoded("JPEG", "L")
    assert (picture_defects(grey), picture_header(grey).components) == ([], 1)


def test_bytes_behind_the_end_mark_do_no_harm():
    assert picture_defects(KINDS["jpeg"] + b"\0" * 100) == []


def test_the_end_mark_of_a_thumbnail_is_not_taken_for_the_picture_s():
    thumbnail = encoded("JPEG", size=(8, 8))
    application = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    picture = KINDS["jpeg"][:2] + application + KINDS["jpeg"][2:]
    assert picture_defects(picture) == []
    assert picture_defects(picture[:-40]) == ["truncated"]


def test_every_code_has_words():
    assert str(PictureDefect("a.JPEG", tuple(ALL_DEFECTS))).count(" and ") >= len(ALL_DEFECTS) - 1


@given(st.binary(max_size=400), st.sampled_from([b"", *(picture[:12] for picture in KINDS.values())]))
def test_no_bytes_whatever_raise(noise, start):
    assert set(picture_defects(start + noise)) <= set(PICTURE_DEFECTS)


@given(
    st.sampled_from(list(KINDS)), st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), max_size=8)
)
def test_no_flipped_bytes_raise(kind, flips):
    picture = bytearray(KINDS[kind])
    for place, value in flips:
        picture[place % len(picture)] = value
    assert set(picture_defects(bytes(picture))) <= set(PICTURE_DEFECTS)


def test_a_crafted_tiff_does_not_keep_us_busy():
    tag = (273).to_bytes(2, "little") + (1).to_bytes(2, "little") + b"\xff\xff\xff\x7f" + b"\x08\0\0\0"
    assert "truncated" in picture_defects(b"II*\0\x08\0\0\0\xff\xff" + tag * 65535)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_a_compressed_tiff_is_whole_and_not_when_it_is_cut(compression):
    whole = encoded("TIFF", compression=compression)
    assert picture_defects(whole) == ["not-jpeg"]
    assert "truncated" in picture_defects(whole[:-8])


def test_a_deep_tiff_and_one_for_print_are_named():
    file = io.BytesIO()
    Image.fromarray(np.arange(384, dtype=np.uint16).reshape(16, 24)).save(file, "TIFF")
    assert picture_defects(file.getvalue()) == ["deep", "not-jpeg"]
    assert picture_defects(encoded("TIFF", "CMYK")) == ["not-jpeg", "cmyk"]


def test_frames_beyond_the_limit_are_not_looked_at():
    assert picture_header(animated("TIFF", MOST_FRAMES + 20)).frames == MOST_FRAMES


def test_a_picture_with_too_many_pixels_is_not_decoded(monkeypatch):
    monkeypatch.setattr(pictures, "MOST_PIXELS", 24 * 16 - 1)
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    assert picture_defects(KINDS["bmp"]) == ["not-jpeg"]


def test_damage_leaves_no_trace_on_standard_error(capfd):
    samples = b"\x15\x01\x03\0\x01\0\0\0"  # a tag of one number
    lying = KINDS["tiff"].replace(samples + b"\x03\0", samples + b"\xff\x7f")
    assert lying != KINDS["tiff"]
    assert "truncated" in picture_defects(lying)
    assert capfd.readouterr().err == ""


def test_a_jpeg_is_recognised_without_importing_pillow(tmp_path):
    file = tmp_path / "picture"
    file.write_bytes(KINDS["jpeg"])
    code = (
        "import sys; from trainmark.data.picture import picture_defects\n"
        "assert picture_defects(open(sys.argv[1], 'rb').read()) == [] and 'PIL' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, file], check=True)
