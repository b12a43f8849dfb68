"""`casewright ask --image`: an answer about an image, from a domain that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from casewright.domains import Domain
from casewright.errors import InputError, StoreError

if TYPE_CHECKING:
    from casewright.planner.chat_text import Chat


def ask_image(
    domain: Domain,
    image: Path,
    generator: str,
    page: Path | None,
    details: Mapping[str, str | None],
    *,
    retain: bool,
    as_json: bool,
) -> None:
    """Answer about an image, and print the answer.

    Args:
        domain: Reads images.
        image: The image's file.
        generator: ``extractive`` for none, or a chat model as ``provider:model``.
        page: Where the answer is written as a page, if anywhere.
        details: What is told of the image beside it, by name; ``None`` where it is not.
        retain: Whether an answer that is proved becomes a case.
        as_json: Whether JSON is printed.

    Raises:
        InputError: The domain reads no images, the image cannot be used, or a detail is not this
            domain's.
    """
    from casewright.serve.output import print_json
    from casewright.serve.place import place_of
    from casewright.stores import default_encoder

    if domain.answer_image is None:
        raise InputError(
            f"The domain {domain.name!r} reads no images. Leave --image out; it goes with "
            "--domain math24 or backgammon."
        )
    told = {name: value for name, value in details.items() if value is not None}
    if unknown := sorted(set(told) - set(domain.image_details)):
        raise InputError(
            f"The domain {domain.name!r} has no use for --{' and --'.join(unknown)}. Leave it out."
        )
    chat = _chat(generator)
    opened = domain.open(place_of(domain.name, None), default_encoder(), False)
    try:
        found = domain.answer_image(opened, image, chat, generator, told, retain=retain)
    finally:
        opened.close()
    if page is not None:
        try:
            page.write_text(found.page, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{page} cannot be written: {error.strerror}.") from error
    if as_json:
        print_json(found.told)
        return
    for line in found.lines:
        typer.echo(line)


def _chat(generator: str) -> Chat | None:
    from casewright.serve.session import EXTRACTIVE, check_generator

    check_generator(generator)
    if generator == EXTRACTIVE:
        return None
    from casewright.planner import chat_model
    from casewright.planner.chat_text import chat_text

    return chat_text(chat_model(generator))
