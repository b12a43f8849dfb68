from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from casewright.errors import InputError
from casewright_backgammon.bench_boards import gnubg_boards, reading_rows
from casewright_backgammon.bench_renderer import LOOKS, render
from casewright_backgammon.board_check import reading_doubt, reading_flaw
from casewright_backgammon.board_decoding import decode
from casewright_backgammon.board_image import board_png, render_board
from casewright_backgammon.board_layout import (
    LOWER_BAR,
    SLICE_COUNT,
    UPPER_BAR,
    position_of_counts,
    signed_counts,
)
from casewright_backgammon.board_positions import random_positions
from casewright_backgammon.board_reader import WEIGHTS, BoardReader, shipped_reader
from casewright_backgammon.board_style import PLAIN, BoardStyle, random_style
from casewright_backgammon.board_training import train_board_reader
from casewright_backgammon.engine import find_engine
from casewright_backgammon.moves import legal_plays
from casewright_backgammon.non_boards import TRAINING_KINDS, UNSEEN_KINDS, draw_non_board
from casewright_backgammon.position import START, Position, flaw, side_of

#: A stack that is too tall, blots, and checkers of both sides on the bar.
BUSY = Position(
    side_of([(1, 3), (3, 6), (6, 3), (13, 1), (25, 2)]),
    side_of([(6, 6), (8, 3), (13, 4), (5, 1), (25, 1)]),
)
HITTING = Position(
    side_of([(6, 4), (8, 3), (13, 5), (20, 2), (7, 1)]),
    side_of([(6, 5), (8, 3), (13, 4), (24, 2), (25, 1)]),
)

#: A printed diagram, a green cloth, a blue screen, and wood.
STYLES: dict[str, BoardStyle] = {
    "print": BoardStyle(
        light=(255, 255, 255),
        dark=(40, 40, 40),
        light_rim=(0, 0, 0),
        dark_rim=(0, 0, 0),
        points=((255, 255, 255), (190, 190, 190)),
        field=(255, 255, 255),
        frame=(255, 255, 255),
        bar_colour=(255, 255, 255),
        ink=(0, 0, 0),
        outline=0.05,
        shade=0.0,
        shadow=0.0,
        rings=0,
        trays="none",
        off="none",
        bar=0.9,
    ),
    "cloth": BoardStyle(
        light=(240, 240, 235),
        dark=(170, 30, 35),
        light_rim=(180, 180, 170),
        dark_rim=(90, 10, 15),
        points=((222, 206, 160), (24, 62, 44)),
        field=(46, 104, 74),
        frame=(70, 40, 22),
        bar_colour=(60, 34, 18),
        grain=0.25,
        shade=0.6,
        rings=0,
        tall="overlap",
        trays="both",
        dice="halves",
        cube="tray",
    ),
    "screen": BoardStyle(
        light=(250, 214, 92),
        dark=(34, 60, 140),
        light_rim=(150, 118, 20),
        dark_rim=(12, 24, 70),
        points=((150, 176, 206), (84, 112, 150)),
        field=(206, 218, 232),
        frame=(44, 58, 78),
        bar_colour=(44, 58, 78),
        shade=0.0,
        rings=0,
        shadow=0.0,
        tall="layers",
        bar_from="centre",
        trays="left",
        texts=3,
        margins=(0.05, 0.08, 0.05, 0.08),
    ),
    "wood": BoardStyle(
        light=(226, 184, 120),
        dark=(50, 32, 24),
        light_rim=(150, 108, 60),
        dark_rim=(24, 14, 10),
        points=((206, 160, 100), (112, 60, 34)),
        field=(160, 108, 66),
        frame=(96, 56, 30),
        bar_colour=(96, 56, 30),
        grain=0.6,
        stretch=8.0,
        shade=0.7,
        has_hinges=True,
        has_labels=False,
        trays="none",
        off="none",
        dice="halves",
        rotation=0.8,
        blur=0.6,
        jpeg=80,
    ),
}


def image_bytes(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def one_line_message(error: pytest.ExceptionInfo[InputError]) -> str:
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith((".", "backgammon"))
    return message


def random_games(seed: int) -> Iterator[Position]:
    """Yield positions of random games with all checkers on the board."""
    rng = np.random.default_rng(seed)
    while True:
        position = START
        for _ in range(30):
            plays = legal_plays(position, (int(rng.integers(1, 7)), int(rng.integers(1, 7))))
            position = plays[int(rng.integers(len(plays)))].after.flipped
            if position.off == (0, 0) and not flaw(position):
                yield position


def test_same_position_and_style_give_the_same_image() -> None:
    style = random_style(np.random.default_rng(3))
    assert style == random_style(np.random.default_rng(3))
    assert render_board(BUSY, style).tobytes() == render_board(BUSY, style).tobytes()
    assert render_board(BUSY, style).tobytes() != render_board(BUSY).tobytes()


def test_plain_board_is_720_by_520_pixels_and_a_png() -> None:
    assert (render_board(BUSY).mode, render_board(BUSY).size) == ("RGB", (720, 520))
    assert Image.open(io.BytesIO(board_png(BUSY))).tobytes() == render_board(BUSY).tobytes()


def test_signed_counts_follow_the_convention_of_points_and_sides() -> None:
    counts = signed_counts(START, "light", "right")
    assert (counts[6], counts[4], counts[12], counts[23]) == (5, 3, 5, 2)
    assert (counts[18], counts[16], counts[0], counts[11]) == (-5, -3, -5, -2)
    assert signed_counts(START, "dark", "right") == [-count for count in counts]
    mirrored = signed_counts(START, "light", "left")
    assert mirrored[:12] == counts[11::-1]
    assert mirrored[12:24] == counts[23:11:-1]


@given(
    seed=st.integers(0, 2**32 - 1),
    own=st.sampled_from(["light", "dark"]),
    home=st.sampled_from(["right", "left"]),
    below=st.booleans(),
)
@settings(deadline=None, max_examples=30)
def test_position_of_counts_inverts_signed_counts(
    seed: int, own: str, home: str, below: bool
) -> None:
    position = next(random_positions(np.random.default_rng(seed)))
    counts = signed_counts(position, own, home, own_bar_below=below)
    assert position_of_counts(counts, own, home) == position
    assert reading_flaw(counts, own, home, position.off) == ""


def test_most_random_positions_are_read_from_plain_boards() -> None:
    positions = list(islice(random_games(8), 30))
    reader = shipped_reader()
    readings = [reader.likeliest_readings(render_board(p), offs=[(0, 0)])[0] for p in positions]
    assert (
        sum(r.position == position for r, position in zip(readings, positions, strict=True)) >= 26
    )


@pytest.mark.parametrize("name", STYLES)
def test_board_is_read_in_every_named_style(name: str) -> None:
    for position in (START,):
        picture = render_board(position, STYLES[name])
        assert shipped_reader().likeliest_readings(picture)[0].position == position


def test_most_boards_in_random_styles_are_read() -> None:
    rng = np.random.default_rng(21)
    right = 0
    for position in islice(random_games(5), 30):
        picture = render_board(position, random_style(rng))
        reading = shipped_reader().likeliest_readings(picture, offs=[(0, 0)])[0]
        right += reading.position == position
    assert right >= 20


@pytest.mark.parametrize("look", LOOKS)
def test_board_of_another_renderer_is_read(look: str) -> None:
    for position in (START,):
        assert shipped_reader().read(render(position, LOOKS[look])).position == position


@pytest.mark.skipif(find_engine() is None, reason="GNU Backgammon is not installed")
def test_most_boards_of_gnubg_are_read() -> None:
    positions = list(islice(random_games(6), 8))
    reader = shipped_reader()
    boards = gnubg_boards(positions)
    results = [reader.likeliest_readings(board, "dark")[0].position for board in boards]
    assert sum(map(Position.__eq__, results, positions)) >= 6


@pytest.mark.parametrize("own", ["light", "dark"])
@pytest.mark.parametrize("home", ["right", "left"])
def test_board_is_read_mirrored_and_with_the_colours_exchanged(own: Any, home: Any) -> None:
    for position in (START,):
        image = render_board(position, PLAIN, own, home)
        reading = shipped_reader().read(image, own, home)
        assert reading.position == position
        assert shipped_reader().least_confidence <= reading.confidence <= 1


def test_board_is_read_from_a_path_and_from_bytes_alike(tmp_path: Path) -> None:
    file = tmp_path / "board.png"
    file.write_bytes(board_png(BUSY))
    reading = shipped_reader().read(file)
    assert reading.position == BUSY
    assert reading == shipped_reader().read(file.read_bytes())
    assert reading == shipped_reader().read(render_board(BUSY))


@pytest.mark.parametrize("width", [360, 500, 1000, 1600])
def test_board_is_read_at_every_size(width: int) -> None:
    image = render_board(START)
    size = (width, round(width * image.height / image.width))
    scaled = image.resize(size, Image.Resampling.LANCZOS)
    assert shipped_reader().likeliest_readings(scaled, offs=[(0, 0)])[0].position == START


@cache
def _text() -> Image.Image:
    page = Image.new("RGB", (600, 400), "white")
    for line in range(20):
        ImageDraw.Draw(page).text((20, 10 + 19 * line), "Position after 24/18 13/11. " * 3, "black")
    return page


INVALID_IMAGES: dict[str, tuple[Any, str]] = {
    "text file": (b"4HPwATDgc/ABMA\n", "cannot be read as an image"),
    "nothing": (b"", "cannot be read as an image"),
    "half a PNG": (board_png(START)[:6000], "damaged or cut off"),
    "half a JPEG": (image_bytes(render_board(START), "JPEG")[:9000], "damaged or cut off"),
    "small": (render_board(START).resize((100, 72)), "too few to read"),
    "oblong": (render_board(START).resize((1000, 200)), "Cut the image to the board"),
    "blank": (Image.new("RGB", (720, 520), "white"), "does not look like a whole"),
    "page of text": (_text(), "does not look like a whole"),
    "noise": (
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (400, 500, 3), np.uint8)),
        "does not look like a whole",
    ),
    "none": (None, "An image of a board cannot be a NoneType"),
}


@pytest.mark.parametrize("name", INVALID_IMAGES)
def test_image_without_a_board_is_refused_with_a_one_line_error(name: str) -> None:
    picture, message = INVALID_IMAGES[name]
    with pytest.raises(InputError) as error:
        shipped_reader().read(picture)
    assert message in one_line_message(error)


@pytest.mark.parametrize(
    ("kinds", "pictures"),
    [(TRAINING_KINDS, 10), (TRAINING_KINDS, 30), (UNSEEN_KINDS, 30)],
    ids=["few", "all", "unseen"],
)
def test_pictures_of_other_things_are_refused(kinds: Any, pictures: int) -> None:
    rng = np.random.default_rng(17)
    refusals = []
    for _ in range(pictures):
        reading = shipped_reader().likeliest_readings(draw_non_board(kinds, rng))[0]
        refusals.append(shipped_reader().refusal(reading))
    assert all(refusals)


def counts_with(changes: dict[int, int]) -> list[int]:
    counts = signed_counts(START, "light", "right")
    for index, count in changes.items():
        counts[index] = count
    return counts


@pytest.mark.parametrize(
    ("changes", "off", "message"),
    [
        ({}, None, ""),
        ({18: -6}, None, "the dark side has 16 checkers, and may have 15 at most."),
        ({6: 4, LOWER_BAR: 1}, None, ""),
        ({6: 4}, (1, 0), ""),
        ({6: 4}, (2, 0), "the light side has 14 checkers, and 13 are left"),
        ({}, (1, 0), "the light side has 15 checkers, and 14 are left"),
        ({0: 0, 11: 0, 16: 0, 18: 0}, None, "the dark side has no checkers."),
    ],
)
def test_impossible_reading_has_a_flaw_with_its_reason(
    changes: dict[int, int], off: tuple[int, int] | None, message: str
) -> None:
    reason = reading_flaw(counts_with(changes), "light", "right", off)
    assert message in reason
    assert bool(message) == bool(reason)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, ""),
        ({18: -4}, "the dark side has 14 of 15 checkers"),
        ({6: 4}, "while one stands on its 24 point"),
        ({6: 4, LOWER_BAR: 1}, ""),
        ({6: 3, UPPER_BAR: 1}, "while one stands on the bar"),
    ],
)
def test_reading_with_missing_checkers_before_bear_off_is_doubted(
    changes: dict[int, int], message: str
) -> None:
    assert reading_flaw(counts_with(changes), "light", "right") == ""
    reason = reading_doubt(counts_with(changes), "light", "right")
    assert message in reason
    assert bool(message) == bool(reason)


def test_board_with_more_than_15_checkers_is_refused_with_their_number() -> None:
    board = render_board(START)
    # The five checkers on the 6 point are copied to the 5 point beside it.
    board.paste(board.crop((349, 260, 395, 497)), (395, 260))
    with pytest.raises(InputError) as error:
        shipped_reader().read(board)
    assert "the light side has 20 checkers, and may have 15 at most" in one_line_message(error)


def test_missing_checkers_count_as_borne_off_and_must_equal_the_given_number() -> None:
    hit = Position(side_of([(1, 3), (4, 4), (25, 1)]), side_of([(2, 2), (6, 5), (8, 3), (13, 5)]))
    image = render_board(hit)
    assert shipped_reader().read(image).position == hit
    assert shipped_reader().read(image, off=(7, 0)).position == hit
    with pytest.raises(InputError, match="15 are left when 0 have been borne off"):
        shipped_reader().read(image, off=(0, 0))


def test_decoding_prefers_the_reading_whose_checkers_add_up() -> None:
    shares = np.full((SLICE_COUNT, 31), 1e-6, dtype=np.float32)
    for index, count in enumerate(signed_counts(START, "light", "right")):
        shares[index, count if count >= 0 else 15 - count] = 1.0
    # The six point shows 5 or 4 light checkers, the other side's 6 point 5 or 6 dark ones.
    shares[6, [5, 4]] = 0.4, 0.6
    shares[18, [20, 21]] = 0.4, 0.6
    counts, confidence = decode(shares, "light", "right")
    assert position_of_counts(counts, "light", "right") == START
    assert confidence > 0.9
    counts, confidence = decode(shares, "light", "right", (1, 0))
    assert counts[6] == 4
    assert confidence > 0.9


@pytest.mark.parametrize(
    ("own", "home", "off", "message"),
    [
        ("white", "right", None, "not 'white'"),
        ("light", "up", None, "not 'up'"),
        ("light", "right", (16, 0), "from 0 to 15"),
        ("light", "right", (1,), "from 0 to 15"),
        ("light", "right", (0.5, 0), "from 0 to 15"),
    ],
)
def test_invalid_side_home_or_off_argument_is_refused(
    own: Any, home: Any, off: Any, message: str
) -> None:
    with pytest.raises(InputError) as error:
        shipped_reader().read(render_board(START), own, home, off)
    assert message in one_line_message(error)


def test_impossible_position_is_not_drawn() -> None:
    with pytest.raises(InputError, match="not a backgammon position"):
        render_board(Position(side_of([(6, 16)]), START.other))


def test_missing_network_is_an_error_with_the_training_command(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        BoardReader(tmp_path).read(render_board(START))
    assert one_line_message(error).endswith("Train it: casewright finetune backgammon")


def test_networks_are_small_and_contain_no_local_path() -> None:
    contents = [file.read_bytes() for file in sorted(WEIGHTS.glob("*.onnx"))]
    assert sum(map(len, contents)) <= 4_000_000
    for content in contents:
        assert b"site-packages" not in content
        assert str(Path.home()).encode() + b"/" not in content


def test_training_writes_the_same_networks_for_the_same_seed(tmp_path: Path) -> None:
    sizes = {
        "boards": 12,
        "others": 6,
        "landmark_steps": 2,
        "checker_steps": 2,
        "measured": 4,
    }
    figures = [train_board_reader(tmp_path / name, seed=1, **sizes) for name in ("a", "b")]
    assert figures[0] == figures[1]
    assert set(figures[0]) >= {"boards_right", "non_boards_refused", "least_confidence"}
    for name in ("landmarks.onnx", "checkers.onnx"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize("option", ["boards", "others", "landmark_steps", "checker_steps"])
def test_training_without_pictures_or_steps_is_refused(option: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1 picture"):
        train_board_reader(tmp_path, **{option: 0})  # type: ignore[arg-type]


def test_measurement_has_a_row_for_each_renderer() -> None:
    rows = reading_rows([START, HITTING], 2)
    names = [row["renderer"] for row in rows]
    assert names[:6] == ["plain"] * 2 + ["own styles"] * 2 + ["matplotlib"] * 2
    assert rows[0]["right"] == rows[0]["slices"] == 1.0
    assert rows[0]["wrong"] == rows[0]["refused_right"] == 0.0
