"""From a picture in any common form to what the reader's network takes: 90×90 grey levels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from casewright_mcbr.picture import Wanted, opened_picture

if TYPE_CHECKING:
    from PIL import Image

#: Width and height of what the network takes, in pixels.
INPUT_SIDE = 90
#: A card is about a square.
CARD = Wanted("a card", "about as wide as high", least=32, oblong=3)


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

    grey = opened_picture(image, CARD).convert("L")
    scaled = grey.resize((INPUT_SIDE, INPUT_SIDE), Image.Resampling.BILINEAR)
    return np.asarray(scaled, dtype=np.float32) / np.float32(255)
