"""Save the pictures of the page for the documentation: ``python -m tests.serve.page.pictures``.

The shop answers from the stores in ``CASEWRIGHT_HOME``, without a language model.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.serve.page.helpers import ask
from tests.serve.service.helpers import ROOT, started
from tests.serve.service.test_serve_command import SERVE
from tests.support.browser import chromium, opened

QUESTION = "How much memory is on my Galaxy phone, and do other buyers like it?"
WIDE, NARROW = {"width": 1180, "height": 1130}, {"width": 380, "height": 1500}
PICTURES = {
    "page-light": {"viewport": WIDE, "color_scheme": "light"},
    "page-dark": {"viewport": WIDE, "color_scheme": "dark"},
    "page-narrow": {"viewport": NARROW, "color_scheme": "light"},
}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as log,
        started([*SERVE, "--without-tokens"], Path(log)) as server,
        chromium() as browser,
    ):
        for name, options in PICTURES.items():
            with opened(browser, f"{server.url}/", **options) as tab:
                ask(tab, QUESTION)
                tab.page.wait_for_timeout(500)
                file = folder / f"{name}.png"
                tab.page.screenshot(path=file)
                # With 128 colours, the file has a third of the bytes.
                with Image.open(file) as picture:
                    small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
                small.save(file, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
