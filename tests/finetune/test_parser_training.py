"""Training the plan parser: episodes, the loss, and resuming a stopped training."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from casewright.errors import InputError
from casewright.finetune.parser.episodes import (
    Episode,
    EpisodeSettings,
    Source,
    episodes,
    source_drawer,
    vary_source,
)
from casewright.finetune.parser.loss_network import episode_loss
from casewright.finetune.parser.measuring import PlanScore, ask_back_threshold, fit_card
from casewright.finetune.parser.training import ParserSettings, changed_weights, train_parser
from casewright.planner import AnnotatedQuery
from casewright.planner.parser.runtime import parser_tokenizer
from casewright.planner.parser.weights import ParserCard, save_parser
from casewright.stores.encoders.minilm import minilm_weights
from casewright.stores.encoders.onnx_graph import Bert
from casewright.tools import Toolbox, ToolSpec
from tests.planner.helpers import ROWS, SHOP
from tests.planner.parsers import trained, untrained
from tests.support.shipped import validation_toolboxes

QUERIES = [AnnotatedQuery.read({"query": q, "plan": p, "context": c}) for q, p, c in ROWS]
SHOP_SOURCE = Source("shop", SHOP, {}, QUERIES)


def draw_episode(settings: EpisodeSettings, seed: int = 0) -> Episode:
    return next(episodes([SHOP_SOURCE], parser_tokenizer(), settings, random.Random(seed)))


def test_no_message_of_an_episode_is_its_own_plan_case() -> None:
    episode = draw_episode(EpisodeSettings(few=0, examples_only=0))
    assert any(any(row[: episode.planned_count]) for row in episode.is_case)
    assert not any(episode.is_case[row][row] for row in range(episode.planned_count))


def test_episode_with_removed_tools_plans_only_with_the_remaining_tools() -> None:
    settings = EpisodeSettings(few=0, removed=1, added=0, mixed=0)
    for seed in range(8):
        episode = draw_episode(settings, seed)
        names = {tool.name for tool in episode.schema.tools}
        assert names < set(SHOP.names)
        assert all(step.tool < len(names) for plan in episode.plans for step in plan)


def test_episode_with_few_tools_has_at_most_a_fifth_no_evidence_plans() -> None:
    settings = EpisodeSettings(few=1, added=0, mixed=0, composed=0)
    for seed in range(8):
        episode = draw_episode(settings, seed)
        tools = [tool.name for tool in episode.schema.tools]
        assert len(tools) <= 5
        planned = episode.plans[: episode.planned_count]
        plans = [[tools[step.tool] for step in plan] for plan in planned]
        assert sum(plan == ["no_evidence"] for plan in plans) <= len(plans) / 5


def test_plans_of_a_varied_source_stay_valid_under_other_tool_names() -> None:
    box = validation_toolboxes()[0]
    source = vary_source(Source(box.name, box.toolbox, box.pools, box.queries), 1)
    assert set(source.toolbox.names) != set(box.toolbox.names)
    for query in source.queries:
        query.record.request(source.toolbox).validate(query.plan)


def test_host_source_gets_tools_and_messages_of_another_toolbox() -> None:
    box = validation_toolboxes()[0]
    *_, host = source_drawer([box], extended=[SHOP_SOURCE])(random.Random(0))
    assert len(host.toolbox) > len(SHOP)
    assert set(SHOP.names) <= set(host.toolbox.names)
    for query in host.queries:
        query.record.request(host.toolbox).validate(query.plan)


def test_parser_training_states_are_closer_to_8_bit_than_to_float_states(tmp_path: Path) -> None:
    settings = ParserSettings(minutes=0, frozen=1)
    network = train_parser(lambda _: [SHOP_SOURCE], settings, tmp_path, device="cpu")
    message = draw_episode(EpisodeSettings()).messages[0]
    ids, types = torch.tensor([message.ids]), torch.tensor([message.types])
    with torch.no_grad():
        states = network.frozen_states(ids, torch.ones_like(ids), types)[0].numpy()
    # Only the first layer is compared, since the rounding of later ones amplifies differences.
    first = {
        name: w for name, w in minilm_weights().items() if not re.search(r"layer\.[1-9]", name)
    }
    quantized, unquantized = (
        np.abs(Bert(first, bits=bits).read(message.ids, message.types) - states).mean()
        for bits in (8, 32)
    )
    assert quantized < unquantized


def test_parser_loss_of_one_episode_halves_in_25_training_steps() -> None:
    network = untrained().train()
    episode = draw_episode(EpisodeSettings(few=0, removed=0, added=0, mixed=0))
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    losses = []
    for _ in range(25):
        loss, _ = episode_loss(network, episode)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] / 2


def test_stopped_parser_training_resumes_and_its_parser_can_be_loaded(tmp_path: Path) -> None:
    settings = ParserSettings(minutes=1e-9)
    for _ in range(2):
        network = train_parser(lambda rng: [SHOP_SOURCE], settings, tmp_path / "run")
    checkpoint = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert checkpoint["steps"] == 2
    parts = changed_weights(network)
    assert not any(name.startswith("encoder.") for name in parts)
    save_parser(tmp_path / "parser", parts, ParserCard(training={"steps": 2}))
    loaded = trained(tmp_path / "parser")
    torch.testing.assert_close(loaded.start, network.start, atol=1e-2, rtol=1e-2)
    card = json.loads((tmp_path / "parser" / "parser.json").read_text(encoding="utf-8"))
    assert card["training"] == {"steps": 2}
    with pytest.raises(InputError, match="other settings"):
        train_parser(
            lambda rng: [SHOP_SOURCE], ParserSettings(minutes=1e-9, frozen=5), tmp_path / "run"
        )


def test_source_drawer_draws_every_toolbox_once_per_pass() -> None:
    boxes = validation_toolboxes()[:3]
    sources = source_drawer(boxes)(random.Random(0))
    assert [source.name for source in sources] == [box.name for box in boxes]


def test_fitted_parser_confidence_matches_the_share_of_right_plans() -> None:
    rng = random.Random(0)
    shares = {-0.001: 0.9, -0.05: 0.7, -0.25: 0.5, -1.2: 0.3}
    scores = [PlanScore(s, True, rng.random() < p) for s, p in shares.items() for _ in range(200)]
    card = fit_card(scores)
    confidences = [card.confidence(item.score) for item in scores]
    assert all(abs(card.confidence(score) - share) < 0.1 for score, share in shares.items())
    assert card.confidence(-1.2) <= ask_back_threshold([confidences], 0.1) < card.confidence(-0.25)


def test_asking_threshold_asks_back_at_most_the_share_per_toolbox() -> None:
    card = ParserCard(slope=1.0, shift=0.0)
    groups = [[PlanScore(-score / 10, True, True) for score in range(n, 100 + n)] for n in (0, 90)]
    confidences = [[card.confidence(item.score) for item in group] for group in groups]
    threshold = ask_back_threshold(confidences, 0.1)
    counts = [sum(confidence < threshold for confidence in group) for group in confidences]
    assert counts == [0, 10]


def test_toolbox_whose_plans_have_no_arguments_gives_no_episodes() -> None:
    toolbox = Toolbox([ToolSpec("opening_hours", "When the shop is open.")])
    rows = [
        AnnotatedQuery.read({"query": q, "plan": "s1 = opening_hours()"}) for q in ("open", "now")
    ]
    source = Source("hours", toolbox, {}, rows)
    settings = EpisodeSettings(few=0, added=0)
    assert not list(episodes([source], parser_tokenizer(), settings, random.Random(0)))
