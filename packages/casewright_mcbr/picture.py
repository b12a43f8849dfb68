"""Decodes pictures in any common format, and explains why a picture is refused."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import InputError, one_line

if TYPE_CHECKING:
    from PIL import Image

#: Maximum number of pixels of an image.
MAX_PIXELS = 50_000_000


@dataclass(frozen=True, slots=True)
class ExpectedPicture:
    """The subject that a picture must show, and the limits of its size and shape."""

    subject: str  # the subject with its article, for error messages: "a card"
    shape: str  # the shape, for error messages: "about as wide as high"
    min_side: int  # minimum width and height in pixels
    max_ratio: float  # maximum ratio of the longer side to the shorter


def open_picture(picture: bytes | Path | Image.Image, expected: ExpectedPicture) -> Image.Image:
    """Decode a picture, which is given as a file's bytes, as its path, or as an open image.

    The EXIF orientation is applied, transparent parts become white, and grey levels of more than 8
    bits are scaled to the range from 0 to 255.

    Returns:
        An image that can be converted to "L" or "RGB". Its mode is "L" for grey levels of more than
        8 bits, "RGBA" for a transparent picture, and otherwise the mode of the file.

    Raises:
        InputError: The file is missing, is not an image, or is damaged; the image is too small, too
            large or too oblong.
    """
    from PIL import Image

    if isinstance(picture, Image.Image):
        return _check_and_decode(picture, "The image", expected)
    if isinstance(picture, (bytes, bytearray, memoryview)):
        return _read(io.BytesIO(picture), "The bytes", expected)
    if not isinstance(picture, (str, Path)):
        raise InputError(
            f"An image of {expected.subject} cannot be a {type(picture).__name__}. "
            "Give a path, the bytes of an image file, or a Pillow image."
        )
    try:
        exists, is_file = Path(picture).exists(), Path(picture).is_file()
    except OSError as error:
        raise InputError(
            f"{picture} cannot be opened: {one_line(error)}. Check the file."
        ) from error
    if not exists:
        raise InputError(
            f"There is no file {picture}. Give the path of an image of {expected.subject}."
        )
    if not is_file:
        raise InputError(
            f"{picture} is not a file. Give the path of an image of {expected.subject}."
        )
    return _read(Path(picture), str(picture), expected)


def media_type(image: bytes) -> str:
    """Return the IANA media type of an image file's bytes."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as opened:
        return opened.get_format_mimetype() or "image/png"


def _read(source: io.BytesIO | Path, name: str, expected: ExpectedPicture) -> Image.Image:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # MAX_PIXELS is stricter than the limit of this warning.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source) as image:
                return _check_and_decode(image, name, expected)
    except Image.DecompressionBombError:
        raise _too_large(name) from None
    except UnidentifiedImageError:
        raise InputError(
            f"{name} cannot be read as an image. Give a PNG, JPEG or another common format."
        ) from None
    except OSError as error:
        raise InputError(f"{name} cannot be opened: {one_line(error)}. Check the file.") from error


def _too_large(name: str) -> InputError:
    return InputError(
        f"{name} has more than {MAX_PIXELS // 1_000_000} million pixels. Give a smaller image."
    )


def _check_and_decode(image: Image.Image, name: str, expected: ExpectedPicture) -> Image.Image:
    width, height = image.size
    # The size is checked before the pixels are decoded: a small file can contain a huge image.
    if width * height > MAX_PIXELS:
        raise _too_large(name)
    if min(width, height) < expected.min_side:
        raise InputError(
            f"{name} has {width}×{height} pixels, too few to read. "
            f"Give an image of at least {expected.min_side}×{expected.min_side} pixels."
        )
    if max(width, height) > expected.max_ratio * min(width, height):
        noun = expected.subject.partition(" ")[2]
        raise InputError(
            f"{name} has {width}×{height} pixels; {expected.subject} is {expected.shape}. "
            f"Cut the image to the {noun}."
        )
    try:
        return _decode(image)
    except Exception as error:
        # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and others.
        raise InputError(
            f"{name} is damaged or cut off: not the whole image can be decoded. Save it again."
        ) from error


def _decode(image: Image.Image) -> Image.Image:
    """Return a decoded image, upright and opaque, with at most 8 bits per channel."""
    from PIL import Image, ImageOps

    image.load()
    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("I", "F") or upright.mode.startswith("I;16"):
        levels = np.asarray(upright, dtype=np.float64)
        levels = np.nan_to_num(levels, posinf=0.0, neginf=0.0)
        low, high = levels.min(), levels.max()
        # A file does not say if it has 10, 12 or 16 bits. So the lowest level becomes black, and
        # the highest white.
        return Image.fromarray(
            ((levels - low) * (255 / max(high - low, 1e-9))).round().astype(np.uint8)
        )
    if upright.has_transparency_data:
        background = Image.new("RGBA", upright.size, "white")
        return Image.alpha_composite(background, upright.convert("RGBA"))
    # Only a test: for an unknown mode this raises an error, and the image counts as damaged.
    upright.convert("L")
    return upright
