"""Fonts of drawn cards and boards, for training and for tests.

matplotlib includes all of these fonts. They are split by family, so that a test font is not a bold
or oblique variant of a training font:

* training: DejaVu Sans, DejaVu Sans Mono, STIX General (like Times), and Computer Modern Roman,
* unseen: DejaVu Serif, Computer Modern Sans and Computer Modern Typewriter.

The callers add Pillow's default font, which has no file, to the training fonts.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import DependencyError, InputError

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont, ImageFont

#: Names of font files, without ``.ttf``.
_TRAINING = (
    "DejaVuSans DejaVuSans-Bold DejaVuSans-Oblique DejaVuSans-BoldOblique "
    "DejaVuSansMono DejaVuSansMono-Bold DejaVuSansMono-Oblique DejaVuSansMono-BoldOblique "
    "STIXGeneral STIXGeneralItalic STIXGeneralBol STIXGeneralBolIta cmr10 cmb10 cmti10"
)
_UNSEEN = "DejaVuSerif DejaVuSerif-Bold DejaVuSerif-Italic DejaVuSerif-BoldItalic cmss10 cmtt10"


def training_fonts() -> list[Path]:
    """Return the 15 font files for training; ``DependencyError`` without matplotlib."""
    return _files(_TRAINING)


def unseen_fonts() -> list[Path]:
    """Return the 6 font files for tests; ``DependencyError`` without matplotlib."""
    return _files(_UNSEEN)


def _files(names: str) -> list[Path]:
    try:
        import matplotlib
    except ImportError as error:
        raise DependencyError(
            "The fonts come with matplotlib. Run: pip install 'casewright[plot]'"
        ) from error
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return [folder / f"{name}.ttf" for name in names.split()]


@lru_cache(maxsize=1024)
def font_of(file: Path | None, size: int) -> FreeTypeFont | ImageFont:
    """Return a file's font at a size in pixels; Pillow's default font if ``file`` is ``None``."""
    from PIL import ImageFont

    if file is None:
        return ImageFont.load_default(size)
    try:
        return ImageFont.truetype(str(file), size)
    except OSError as error:
        raise InputError(
            f"{file} is not a readable font. Give a TrueType or OpenType file."
        ) from error
