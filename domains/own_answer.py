"""Options that a domain adds to ``casewright ask``, and answers to requests with these options."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewright.errors import InputError, StoreError
from casewright.planner.chat_call import Chat


@dataclass(frozen=True, slots=True)
class Option:
    """An option that a domain adds to ``casewright ask``; without a ``metavar``, it is a flag."""

    name: str
    help: str
    metavar: str = ""


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """A request by a domain's own options instead of a question; a flag has the value ``True``.

    ``name`` says who answers: a chat model's name, or ``reuse`` if only stored cases are used.
    """

    options: Mapping[str, Any]
    chat: Chat | None = None
    name: str = "reuse"

    @property
    def image(self) -> Path:
        """The path of the image file; raise ``InputError`` if there is none."""
        if "image" not in self.options:
            names = ", ".join(f"--{name}" for name in self.options)
            raise InputError(f"Add --image FILE: {names} are only allowed with --image.")
        return Path(self.options["image"])


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """A domain's answer to an ``OwnRequest``, ready to be shown.

    Attributes:
        lines: The lines to print, such as the cases used, the answer and the result of its check.
        record: The answer as a mapping of JSON values.
        page: The answer as one HTML document with its images.
        right: True if the answer is proved to be right.
    """

    lines: Sequence[str]
    record: dict[str, Any]
    page: str
    right: bool

    @property
    def told(self) -> dict[str, Any]:
        """The former name of ``record``."""
        text = "OwnAnswer.told is now OwnAnswer.record; the old name ends with the next release."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self.record

    def save_page(self, request: OwnRequest) -> OwnAnswer:
        """Write the page to the file of the option ``html``, if given, and return this answer."""
        if "html" in request.options:
            file = Path(request.options["html"])
            try:
                file.write_text(self.page, encoding="utf-8")
            except OSError as error:
                raise StoreError(f"{file} cannot be written: {error.strerror}.") from error
        return self


#: The options of a domain that answers about an image.
IMAGE_OPTIONS = (
    Option("image", "An image to ask about, without a question.", "FILE"),
    Option("html", "With --image, also write the answer as a page.", "FILE"),
    Option("retain", "With --image, keep the answer as a case if it is proved."),
)
