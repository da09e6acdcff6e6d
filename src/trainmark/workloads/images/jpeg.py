"""JPEG bytes to a window of the image at the size that is trained, by the best decoder that is there."""

import io
import os

from trainmark.workloads.images import native

CODECS = ("native", "simplejpeg", "pillow")  # the best first
COLOURS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
JPEG = b"\xff\xd8\xff"
END = b"\xff\xd9"


class Undecodable(Exception):  # noqa: N818
    """Why the bytes are no image that can be used."""


class CodecMissing(Exception):  # noqa: N818
    """Why a codec cannot be used here."""


class Pillow:
    """Decodes the whole image, then cuts and resizes: the reference of the others."""

    name = "pillow"

    def __init__(self):
        try:
            from PIL import Image
        except ImportError:
            raise CodecMissing("Pillow is not installed") from None
        self._image = Image

    def decode(self, data, choose, out):
        """Writes the window that `choose(width, height)` names into `out`, uint8 (size, size, 3)."""
        if data[:3] == JPEG:
            require_end_marker(data)
        out[:] = self._cut(self._open(data), choose, out.shape[0])

    def resize(self, pixels, window, size):
        return self._cut(self._image.fromarray(pixels), lambda width, height: window, size)

    def _open(self, data):
        try:
            image = self._image.open(io.BytesIO(data))
            if getattr(image, "n_frames", 1) != 1:
                raise Undecodable(f"{image.format} with {image.n_frames} frames")
            if image.mode not in COLOURS:
                raise Undecodable(f"{image.format} of mode {image.mode}, not 8 bits a colour")
            return image if image.mode == "RGB" else image.convert("RGB")
        except Undecodable:
            raise
        except Exception as error:
            raise Undecodable(f"{type(error).__name__}: {error}") from error

    def _cut(self, image, choose, size):
        window = choose(*image.size)
        box = (window.left, window.top, window.left + window.width, window.top + window.height)
        try:
            if window.inside:
                image = image.crop(box)
                box = None
            image = image.resize((size, size), self._image.BILINEAR, box=box)
        except OSError as error:  # the pixels are decoded only here
            raise Undecodable(str(error)) from error
        if window.flip:
            image = image.transpose(self._image.FLIP_LEFT_RIGHT)
        return image


class Simplejpeg:
    """libjpeg-turbo's whole image, resized by Pillow."""

    name = "simplejpeg"

    def __init__(self):
        try:
            import simplejpeg
        except ImportError:
            raise CodecMissing("simplejpeg is not installed") from None
        self._decode = simplejpeg.decode_jpeg
        self._pillow = Pillow()

    def decode(self, data, choose, out):
        if data[:3] != JPEG:
            return self._pillow.decode(data, choose, out)
        require_end_marker(data)
        try:
            pixels = self._decode(data, "RGB")
        except ValueError as error:
            if "colorspace" in str(error).lower():  # CMYK is beyond it
                return self._pillow.decode(data, choose, out)
            raise Undecodable(str(error)) from error
        height, width = pixels.shape[:2]
        out[:] = self._pillow.resize(pixels, choose(width, height), out.shape[0])
        return None


class Native:
    """Our own C over libjpeg-turbo: decodes what the window needs and no more."""

    name = "native"

    def __init__(self):
        try:
            self._library = native.load()
        except native.Unbuilt as error:
            raise CodecMissing(str(error)) from error
        self._pillow = None

    def decode(self, data, choose, out):
        if data[:3] != JPEG:
            return self._other(data, choose, out)
        require_end_marker(data)
        try:
            width, height = self._library.size(data)
            self._library.decode(data, choose(width, height), out)
        except native.DecodeFailed as error:
            raise Undecodable(str(error)) from error
        return None

    def batch(self, records, training, least, key, threads, out):
        """Whole batches without Python: which places of `out` it could fill."""
        return self._library.batch(records, training, least, key, threads, out)

    def _other(self, data, choose, out):
        """ImageNet has a PNG among its JPEGs."""
        if self._pillow is None:
            try:
                self._pillow = Pillow()
            except CodecMissing:
                raise Undecodable("no JPEG, and Pillow, which might read it, is not installed") from None
        return self._pillow.decode(data, choose, out)


def require_end_marker(data):
    """A JPEG that was cut short is bad wherever the window lies: the end marker must be there."""
    if data.rfind(END) < 0:
        raise Undecodable("no end of image: the JPEG was cut short")


def codec(name=None):
    """The named one, or the best that is there (`TRAINMARK_JPEG` may name it); Absent with the reason."""
    name = name or os.environ.get("TRAINMARK_JPEG")
    kinds = {"native": Native, "simplejpeg": Simplejpeg, "pillow": Pillow}
    if name:
        if name not in kinds:
            raise CodecMissing(f"there is no JPEG codec '{name}', only {', '.join(CODECS)}")
        return kinds[name]()
    reasons = []
    for each in CODECS:
        try:
            return kinds[each]()
        except CodecMissing as error:
            reasons.append(f"{each}: {error}")
    raise CodecMissing("no JPEG codec: " + "; ".join(reasons))
