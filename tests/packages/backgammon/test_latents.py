"""Tests of the encoding, the multi-task network and its training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright_backgammon.case_base import shipped_decisions
from casewright_backgammon.decision import flipped_chances
from casewright_backgammon.encoding import INPUT_COUNT, SIDE_INPUTS, encode
from casewright_backgammon.games import part_of, split_games
from casewright_backgammon.latent import LATENT_SIZE, load_network, shipped_network
from casewright_backgammon.latent_training import (
    examples_of,
    read_pool,
    train_network,
)
from casewright_backgammon.position import START, Position
from casewright_backgammon.training import choice_loss

KNOWN = shipped_decisions()[:300]
OTHERS = shipped_decisions()[-200:]


def test_start_position_is_encoded_like_td_gammon() -> None:
    (encoded,) = encode([START])
    assert encoded.shape == (INPUT_COUNT,)
    # Five checkers on the 6 point fill its four inputs; two on the 24 point fill two inputs.
    assert encoded[4 * 5 : 4 * 6].tolist() == [1, 1, 1, 1]
    assert encoded[4 * 23 : 4 * 24].tolist() == [1, 1, 0, 0]
    assert encoded[:SIDE_INPUTS].tolist() == encoded[SIDE_INPUTS : 2 * SIDE_INPUTS].tolist()
    assert encoded[-2:].tolist() == [1, 0]


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(shipped_decisions()))
def test_encoding_differs_from_the_start_and_exchanges_sides_when_flipped(
    decision: object,
) -> None:
    position: Position = decision.position  # type: ignore[attr-defined]
    (encoded,), (flipped,) = encode([position]), encode([position.flipped])
    assert encoded[:SIDE_INPUTS].tolist() == flipped[SIDE_INPUTS : 2 * SIDE_INPUTS].tolist()
    assert (encoded == encode([START])[0]).all() == (position == START)


def test_trained_network_loses_less_on_unseen_games_than_with_shuffled_labels() -> None:
    examples = examples_of(KNOWN)
    network = train_network(examples, 1.0, epochs=12)
    shuffled = train_network(examples.shuffled(0), 1.0, epochs=12)
    mean_loss = np.mean([choice_loss(network, decision) for decision in OTHERS])
    worst_loss = np.mean(
        [
            [decision.equity_loss(rank) for rank in range(len(decision.candidates))][-1]
            for decision in OTHERS
        ]
    )
    assert mean_loss < np.mean([choice_loss(shuffled, decision) for decision in OTHERS])
    assert mean_loss < worst_loss / 2


def test_training_is_reproducible_by_seed_and_the_network_is_equal_after_loading(
    tmp_path: Path,
) -> None:
    examples = examples_of(KNOWN[:40])
    first, second = (train_network(examples, 0.5, seed=3, epochs=1) for _ in range(2))
    first.save(tmp_path / "latent.npz")
    second.save(tmp_path / "again.npz")
    assert (tmp_path / "latent.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    loaded = load_network(tmp_path / "latent.npz")
    assert loaded.name == "backgammon-0.5-3"
    assert (loaded.latents([START]) == first.latents([START])).all()
    assert loaded.latents([START]).shape == (1, LATENT_SIZE)
    assert loaded.latents([]).shape == (0, LATENT_SIZE)


def test_flipped_chances_exchange_wins_and_losses() -> None:
    assert flipped_chances((0.7, 0.2, 0.05, 0.1, 0.01)) == (
        pytest.approx(0.3),
        0.1,
        0.01,
        0.2,
        0.05,
    )


def test_finished_game_has_equity_1_2_or_3() -> None:
    no_checkers = (0,) * 25
    single = Position(no_checkers, (3, *(0,) * 24))
    gammon = Position(no_checkers, (*(0,) * 6, 15, *(0,) * 18))
    backgammon = Position(no_checkers, (14, *(0,) * 23, 1))
    equities = shipped_network().after_equities([single, gammon, backgammon])
    assert equities.tolist() == [1, 2, 3]


def test_query_games_share_no_game_or_position_with_the_cases() -> None:
    pool = [(KNOWN[0].position, KNOWN[0].best.chances)]
    split = split_games(shipped_decisions(), pool, part=0)
    assert {part_of(decision.game) for decision in split.queries} == {0}
    assert 0 not in {part_of(decision.game) for decision in split.cases}
    assert not {decision.position for decision in split.cases} & {
        decision.position for decision in split.queries
    }
    query_positions = {decision.position for decision in split.queries}
    assert all(position not in query_positions for position, _ in split.pool)
    with pytest.raises(InputError, match="too few games"):
        split_games(KNOWN[:1], [], part=0)


@pytest.mark.parametrize("content", [b"", b"no arrays", b"PK\x03\x04 cut"])
def test_file_without_a_network_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "latent.npz"
    file.write_bytes(content)
    with pytest.raises(InputError, match="finetune backgammon"):
        load_network(file)


@pytest.mark.parametrize(
    "line", ["no json", '{"position_id": "4HPwATDgc/ABMA"}', '{"position_id": "x", "value": {}}']
)
def test_invalid_line_of_the_position_pool_is_refused_with_its_number(
    tmp_path: Path, line: str
) -> None:
    chances = {"win": 0.5, "win_g": 0, "win_bg": 0, "lose_g": 0, "lose_bg": 0, "class": 10}
    valid_line = json.dumps({"position_id": START.id, "value": chances})
    file = tmp_path / "pool.jsonl"
    file.write_text(f"{valid_line}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        read_pool(file)
    file.write_text(f"{valid_line}\n", encoding="utf-8")
    assert read_pool(file) == [(START, (0.5, 0, 0, 0, 0))]
