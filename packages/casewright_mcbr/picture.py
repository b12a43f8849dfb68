"""Opening a picture of any common form, or saying clearly why it cannot be."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from casewright.errors import InputError, told

if TYPE_CHECKING:
    from PIL import Image

#: An image has at most so many pixels.
MOST_PIXELS = 50_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a picture should show, for the limits and the words of a refusal.

    Attributes:
        what: With its article: "a card".
        shape: Its form, as a refusal says it: "about as wide as high".
        least: It is at least so many pixels wide and high.
        oblong: A side is at most so many times the other.
    """

    what: str
    shape: str
    least: int
    oblong: float

    @property
    def noun(self) -> str:
        """What it is, without its article."""
        return self.what.split(" ", 1)[1]


def opened_picture(picture: bytes | Path | Image.Image, wanted: Wanted) -> Image.Image:
    """Return a picture that is wholly decoded, as its maker meant it to be seen.

    It is turned as its EXIF data says and laid on white where it is transparent; deep grey levels
    are brought to 0 to 255.

    Args:
        picture: The bytes of an image file, the path of one, or an image that is open.
        wanted: What it should show.

    Returns:
        An image of its own mode ("L" of deep grey ones, "RGBA" without transparency of
        transparent ones), to be converted to "L" or "RGB".

    Raises:
        InputError: There is no such file; it holds no image or only a part of one; the image is
            too small, too large or too oblong.
    """
    from PIL import Image

    if isinstance(picture, Image.Image):
        return _decoded(picture, "The image", wanted)
    if isinstance(picture, (bytes, bytearray, memoryview)):
        return _read(io.BytesIO(picture), "The bytes", wanted)
    if not isinstance(picture, (str, Path)):
        raise InputError(
            f"An image of {wanted.what} cannot be a {type(picture).__name__}. "
            "Give a path, the bytes of an image file, or a Pillow image."
        )
    try:
        there, plain = Path(picture).exists(), Path(picture).is_file()
    except OSError as error:
        raise InputError(f"{picture} cannot be opened: {told(error)}. Check the file.") from error
    if not there:
        raise InputError(f"There is no file {picture}. Give the path of an image of {wanted.what}.")
    if not plain:
        raise InputError(f"{picture} is no file. Give the path of an image of {wanted.what}.")
    return _read(Path(picture), str(picture), wanted)


def _read(source: io.BytesIO | Path, name: str, wanted: Wanted) -> Image.Image:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Our own limit is stricter than the one that Pillow warns of.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source) as image:
                return _decoded(image, name, wanted)
    except Image.DecompressionBombError:
        raise _too_large(name) from None
    except UnidentifiedImageError:
        raise InputError(
            f"{name} cannot be read as an image. Give a PNG, JPEG or another common format."
        ) from None
    except OSError as error:
        raise InputError(f"{name} cannot be opened: {told(error)}. Check the file.") from error


def _too_large(name: str) -> InputError:
    return InputError(
        f"{name} has more than {MOST_PIXELS // 1_000_000} million pixels. Give a smaller image."
    )


def _decoded(image: Image.Image, name: str, wanted: Wanted) -> Image.Image:
    width, height = image.size
    # Asked before a pixel is decoded: a small file can hold a huge image.
    if width * height > MOST_PIXELS:
        raise _too_large(name)
    if min(width, height) < wanted.least:
        raise InputError(
            f"{name} has {width}×{height} pixels, too few to read. "
            f"Give an image of at least {wanted.least}×{wanted.least} pixels."
        )
    if max(width, height) > wanted.oblong * min(width, height):
        raise InputError(
            f"{name} has {width}×{height} pixels; {wanted.what} is {wanted.shape}. "
            f"Cut the image to the {wanted.noun}."
        )
    try:
        return _shown(image)
    except InputError:
        raise
    except Exception as error:
        # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and others.
        raise InputError(
            f"{name} is damaged or cut off: not the whole image can be decoded. Save it anew."
        ) from error


def _shown(image: Image.Image) -> Image.Image:
    """Return an image, wholly decoded, turned, without transparency, of at most 8 bits a level."""
    from PIL import Image, ImageOps

    image.load()
    turned = ImageOps.exif_transpose(image)
    if turned.mode in ("I", "F") or turned.mode.startswith("I;16"):
        levels = np.asarray(turned, dtype=np.float64)
        levels = np.nan_to_num(levels, posinf=0.0, neginf=0.0)
        low, high = levels.min(), levels.max()
        # Such images hold 10, 12 or 16 bits; which, no file says.
        return Image.fromarray(
            ((levels - low) * (255 / max(high - low, 1e-9))).round().astype(np.uint8)
        )
    if turned.has_transparency_data:
        whole = turned.convert("RGBA")
        under = Image.new("RGBA", whole.size, "white")
        return Image.alpha_composite(under, whole)
    # A mode that nothing can be made of is found here, not where it is used.
    turned.convert("L")
    return turned
