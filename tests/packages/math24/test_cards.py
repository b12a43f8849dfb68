from __future__ import annotations

import io
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from casewright.errors import InputError
from casewright_math24.card_reader import CARD_WEIGHTS, CardReader
from casewright_math24.cards import CardStyle, random_style, render_card
from casewright_math24.non_cards import TRAINED_KINDS, UNSEEN_KINDS, Draw, draw_non_card
from casewright_mcbr.fonts import training_fonts, unseen_fonts

NUMBERS = (3, 13, 8, 10)


@pytest.fixture(scope="module")
def reader() -> CardReader:
    return CardReader()


def image_bytes(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def random_cards(count: int, seed: int) -> tuple[list[tuple[int, ...]], np.random.Generator]:
    rng = np.random.default_rng(seed)
    return [tuple(row) for row in rng.integers(1, 14, (count, 4)).tolist()], rng


def read_or_refused(reader: CardReader, image: Any) -> tuple[int, ...] | None:
    try:
        return reader.read(image).numbers
    except InputError:
        return None


def share_right(reader: CardReader, cards: list[tuple[int, ...]], images: Any) -> float:
    pairs = zip(images, cards, strict=True)
    return sum(read_or_refused(reader, image) == card for image, card in pairs) / len(cards)


def one_line_message(error: pytest.ExceptionInfo[InputError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith((".", "math24"))
    return message


def test_same_numbers_and_style_give_the_same_image() -> None:
    style = random_style(np.random.default_rng(3), training_fonts())
    assert style == random_style(np.random.default_rng(3), training_fonts())
    first, second = render_card(NUMBERS, style), render_card(NUMBERS, style)
    assert (first.mode, first.size) == ("L", (180, 180))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != render_card(NUMBERS).tobytes()
    assert render_card(NUMBERS).tobytes() == render_card(np.array(NUMBERS), CardStyle()).tobytes()


def test_noise_depends_on_the_seed_of_the_style_alone() -> None:
    first, second = (render_card(NUMBERS, CardStyle(noise=10, seed=seed)) for seed in (1, 2))
    assert first.tobytes() != second.tobytes()


def test_card_shows_its_numbers_row_by_row() -> None:
    plain, other = (np.asarray(render_card(numbers)) for numbers in (NUMBERS, (3, 13, 9, 10)))
    changed = np.argwhere(plain != other)
    assert changed[:, 0].min() >= 90
    assert changed[:, 1].max() < 90


@pytest.mark.parametrize(
    "numbers",
    [
        (),
        (1, 2, 3),
        (1, 2, 3, 4, 5),
        (0, 1, 2, 3),
        (1, 2, 3, 14),
        (-1, 2, 3, 4),
        (1.0, 2, 3, 4),
        (True, 2, 3, 4),
        ("1", "2", "3", "4"),
        "1234",
        (None, 1, 2, 3),
        7,
        (10**400, 1, 2, 3),
    ],
    ids=lambda numbers: repr(numbers)[:20],
)
def test_anything_but_four_whole_numbers_from_1_to_13_is_refused(numbers: Any) -> None:
    with pytest.raises(InputError) as error:
        render_card(numbers)
    assert len(one_line_message(error)) < 200


def test_unreadable_font_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.ttf").write_text("no font")
    with pytest.raises(InputError, match=r"no\.ttf is not a readable font"):
        render_card(NUMBERS, CardStyle(font=tmp_path / "no.ttf"))


def test_training_fonts_and_unseen_fonts_share_no_family() -> None:
    training, unseen = training_fonts(), unseen_fonts()
    assert all(file.is_file() for file in training + unseen)
    families = [{file.stem.split("-")[0][:11] for file in side} for side in (training, unseen)]
    assert not families[0] & families[1]


def test_every_plain_card_is_read(reader: CardReader) -> None:
    cards, _ = random_cards(300, 11)
    assert share_right(reader, cards, map(render_card, cards)) == 1.0


def test_turned_cards_in_unseen_fonts_are_read(reader: CardReader) -> None:
    cards, rng = random_cards(300, 12)
    fonts = unseen_fonts()
    images = (render_card(card, random_style(rng, fonts, rotation=15)) for card in cards)
    assert share_right(reader, cards, images) >= 0.98


@pytest.mark.parametrize(("kinds", "minimum"), [(TRAINED_KINDS, 0.95), (UNSEEN_KINDS, 0.9)])
def test_images_that_are_no_cards_are_refused(
    reader: CardReader, kinds: dict[str, Draw], minimum: float
) -> None:
    rng = np.random.default_rng(13)
    fonts = unseen_fonts()
    readings = [read_or_refused(reader, draw_non_card(kinds, rng, fonts)) for _ in range(200)]
    assert readings.count(None) / len(readings) >= minimum


def grey_16(card: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(card).astype(np.uint16) * 257)


def transparent(card: Image.Image) -> Image.Image:
    ink = Image.new("RGBA", card.size, (0, 0, 0, 0))
    ink.putalpha(card.point([255 - level for level in range(256)]))
    return ink


FORMS: dict[str, Callable[[Image.Image], bytes | Image.Image]] = {
    "grey": lambda card: card,
    "RGB": lambda card: card.convert("RGB"),
    "RGBA over white": transparent,
    "palette": lambda card: card.convert("RGB").quantize(8),
    "black and white": lambda card: card.convert("1"),
    "16 bits": grey_16,
    "10 of 16 bits": lambda card: Image.fromarray(np.asarray(card).astype(np.uint16) * 4),
    "floating point": lambda card: card.convert("F"),
    "CMYK": lambda card: card.convert("CMYK"),
    "white on black": lambda card: card.point([255 - level for level in range(256)]),
    "PNG of 16 bits": lambda card: image_bytes(grey_16(card)),
    "JPEG": lambda card: image_bytes(card, "JPEG", quality=60),
    "GIF": lambda card: image_bytes(card, "GIF"),
    "WebP": lambda card: image_bytes(card, "WEBP"),
    "TIFF": lambda card: image_bytes(card, "TIFF"),
    "coloured": lambda card: Image.merge(
        "RGB", [card.point([level // 2 + add for level in range(256)]) for add in (20, 90, 40)]
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_card_is_read_in_every_image_format(reader: CardReader, form: str) -> None:
    for numbers in (NUMBERS, (1, 7, 12, 11), (9, 6, 5, 2)):
        assert reader.read(FORMS[form](render_card(numbers))).numbers == numbers


@pytest.mark.parametrize("turn", [3, 6, 8])
def test_card_is_rotated_by_its_exif_orientation(reader: CardReader, turn: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    degrees = {3: 180, 6: 90, 8: 270}[turn]
    image = render_card(NUMBERS).rotate(degrees)
    assert reader.read(image_bytes(image, "JPEG", exif=exif)).numbers == NUMBERS


@pytest.mark.parametrize(
    "size", [(32, 32), (48, 48), (91, 89), (180, 180), (640, 480), (3000, 3000)]
)
def test_card_is_read_at_every_size(reader: CardReader, size: tuple[int, int]) -> None:
    image = render_card(NUMBERS).resize(size, Image.Resampling.LANCZOS)
    assert reader.read(image).numbers == NUMBERS


def test_card_is_read_from_a_path_and_from_bytes_alike(reader: CardReader, tmp_path: Path) -> None:
    file = tmp_path / "card.png"
    render_card(NUMBERS).save(file)
    reading = reader.read(file)
    assert reading.numbers == NUMBERS
    assert reader.threshold <= reading.confidence <= 1
    assert reading == reader.read(file.read_bytes()) == reader.read(render_card(NUMBERS))


def test_cards_of_several_batches_are_read_in_their_order(reader: CardReader) -> None:
    cards, _ = random_cards(70, 14)
    shares = reader.probabilities(map(render_card, cards))
    assert [tuple(row) for row in (shares.argmax(axis=2) + 1).tolist()] == cards
    assert reader.probabilities([]).shape == (0, 4, 13)


def bomb() -> bytes:
    """Return a small PNG whose header claims 40,000 × 40,000 pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        chunk = kind + body
        return len(body).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")

    size = (40_000).to_bytes(4, "big")
    head = chunk(b"IHDR", size + size + bytes([8, 0, 0, 0, 0]))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


NOISY = render_card(NUMBERS, CardStyle(noise=20))
INVALID_IMAGES: dict[str, tuple[Any, str]] = {
    "text": (b"1 2 3 4\n", "cannot be read as an image"),
    "nothing": (b"", "cannot be read as an image"),
    "random bytes": (random.Random(0).randbytes(5000), "cannot be read as an image"),
    "half a PNG": (image_bytes(NOISY)[:9000], "damaged or cut off"),
    "half a JPEG": (image_bytes(NOISY, "JPEG")[:4000], "damaged or cut off"),
    "end of a PNG changed": (image_bytes(NOISY)[:-3000] + bytes(3000), "damaged or cut off"),
    "bomb": (bomb(), "more than 50 million pixels"),
    "large": (Image.new("1", (7100, 7100)), "more than 50 million pixels"),
    "small": (render_card(NUMBERS).resize((31, 40)), "too few to read"),
    "oblong": (render_card(NUMBERS).resize((400, 100)), "as wide as high"),
    "blank": (Image.new("RGB", (180, 180), "white"), "does not look like a card"),
    "transparent": (Image.new("RGBA", (90, 90)), "does not look like a card"),
    "list": ([1, 2, 3, 4], "cannot be a list"),
    "none": (None, "cannot be a NoneType"),
}


@pytest.mark.parametrize("name", INVALID_IMAGES)
def test_invalid_image_is_refused_with_a_one_line_error(reader: CardReader, name: str) -> None:
    image, message = INVALID_IMAGES[name]
    with pytest.raises(InputError) as error:
        reader.read(image)
    assert message in one_line_message(error)


def test_error_names_the_invalid_file(reader: CardReader, tmp_path: Path) -> None:
    for name, content, message in (
        ("text.png", b"no image", "cannot be read as an image"),
        ("half.png", image_bytes(NOISY)[:9000], "damaged or cut off"),
        ("blank.png", image_bytes(Image.new("L", (99, 99))), "does not look like a card"),
        ("missing.png", None, "There is no file"),
    ):
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(InputError) as error:
            reader.read(file)
        assert str(file) in one_line_message(error)
        assert message in str(error.value)
    with pytest.raises(InputError, match="is not a file"):
        reader.read(tmp_path)


def test_missing_network_is_an_error_with_the_training_command(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        CardReader(tmp_path / "cards.onnx").read(render_card(NUMBERS))
    assert one_line_message(error).endswith("Train it: casewright finetune math24")


def test_network_is_small_and_contains_no_local_path() -> None:
    content = CARD_WEIGHTS.read_bytes()
    assert len(content) <= 1_500_000
    assert b"site-packages" not in content
    assert str(Path.home()).encode() + b"/" not in content
