"""From a picture in any common form to what the reader's network takes: 90×90 grey levels."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, told

if TYPE_CHECKING:
    from PIL import Image

#: Width and height of what the network takes, in pixels.
INPUT_SIDE = 90
#: Images are at least so wide and high, and have at most so many pixels.
LEAST_SIDE, MOST_PIXELS = 32, 50_000_000
#: A side is at most so many times the other: a card is about a square.
MOST_OBLONG = 3


def card_input(image: bytes | Path | Image.Image) -> NDArray[np.float32]:
    """Return a picture as grey levels from 0 (black) to 1 (white), array (90, 90).

    It is turned as its EXIF data says, laid on white where it is transparent, and scaled.

    Args:
        image: The bytes of an image file, the path of one, or an image that is open.

    Raises:
        InputError: There is no such file; it holds no image or only a part of one; the image is
            too small, too large or far from square.
    """
    from PIL import Image

    if isinstance(image, Image.Image):
        return _scaled(image, "The image")
    if isinstance(image, (bytes, bytearray, memoryview)):
        return _opened(io.BytesIO(image), "The bytes")
    if not isinstance(image, (str, Path)):
        raise InputError(
            f"An image of a card cannot be a {type(image).__name__}. "
            "Give a path, the bytes of an image file, or a Pillow image."
        )
    if not Path(image).exists():
        raise InputError(f"There is no file {image}. Give the path of an image of a card.")
    if not Path(image).is_file():
        raise InputError(f"{image} is no file. Give the path of an image of a card.")
    return _opened(Path(image), str(image))


def _opened(source: io.BytesIO | Path, name: str) -> NDArray[np.float32]:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Our own limit is stricter than the one that Pillow warns of.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(source) as image:
                return _scaled(image, name)
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


def _scaled(image: Image.Image, name: str) -> NDArray[np.float32]:
    from PIL import Image

    width, height = image.size
    # Asked before a pixel is decoded: a small file can hold a huge image.
    if width * height > MOST_PIXELS:
        raise _too_large(name)
    if min(width, height) < LEAST_SIDE:
        raise InputError(
            f"{name} has {width}×{height} pixels, too few to read. "
            f"Give an image of at least {LEAST_SIDE}×{LEAST_SIDE} pixels."
        )
    if max(width, height) > MOST_OBLONG * min(width, height):
        raise InputError(
            f"{name} has {width}×{height} pixels; a card is about as wide as high. "
            "Cut the image to the card."
        )
    try:
        grey = _grey(image)
    except InputError:
        raise
    except Exception as error:
        # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and others.
        raise InputError(
            f"{name} is damaged or cut off: not the whole image can be decoded. Save it anew."
        ) from error
    scaled = grey.resize((INPUT_SIDE, INPUT_SIDE), Image.Resampling.BILINEAR)
    return np.asarray(scaled, dtype=np.float32) / np.float32(255)


def _grey(image: Image.Image) -> Image.Image:
    """Return an image, wholly decoded, as grey levels of 0 to 255 (mode "L")."""
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
        return Image.alpha_composite(under, whole).convert("L")
    return turned.convert("L")
