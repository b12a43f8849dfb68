"""The optimiser Muon: for matrices of hidden layers, and resumed as it was."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.recipe.training_rules import check_together
from casewright.finetune.recipe.training_section import LoraSection
from casewright.finetune.training.muon import muon
from tests.support.tiny_mistral import tiny_mistral
from tests.support.trained import MODEL, training


def network() -> Any:
    found: Any = tiny_mistral().network
    return found.requires_grad_(True)


def stepped(net: Any, optimiser: Any, steps: int) -> None:
    torch: Any = import_module("torch")
    ids = torch.arange(24).reshape(2, 12)
    for _ in range(steps):
        net(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
        optimiser.zero_grad()


def test_a_matrix_moves_by_the_same_in_all_its_directions() -> None:
    torch: Any = import_module("torch")
    net = network()
    matrix = net.model.layers[0].mlp.up_proj.weight
    before = matrix.detach().clone()
    stepped(net, muon(net, lr=0.1, weight_decay=0.0, beta2=0.99), 1)
    moved = torch.linalg.svdvals((before - matrix).detach()) / 0.1
    scale = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
    assert float(moved.max()) < 1.3 * scale
    assert float(moved.median()) > 0.6 * scale


def test_a_loss_falls_and_all_that_is_no_hidden_matrix_is_adamws() -> None:
    net = network()
    optimiser = muon(net, lr=0.02, weight_decay=0.0, beta2=0.99)
    stepped(net, optimiser, 3)
    kept = {key for state in optimiser.state.values() for key in state}
    assert kept == {"momentum", "step", "exp_avg", "exp_avg_sq"}
    embedding = net.get_input_embeddings().weight
    assert "exp_avg" in optimiser.state[embedding]
    assert "momentum" not in optimiser.state[embedding]


def test_it_goes_on_from_its_saved_state_as_if_it_had_not_stopped() -> None:
    torch: Any = import_module("torch")
    one, other = network(), network()
    going = muon(one, lr=0.02, weight_decay=0.1, beta2=0.99)
    stepped(one, going, 4)
    begun = muon(other, lr=0.02, weight_decay=0.1, beta2=0.99)
    stepped(other, begun, 2)
    resumed = muon(other, lr=0.02, weight_decay=0.1, beta2=0.99)
    resumed.load_state_dict(begun.state_dict())
    stepped(other, resumed, 2)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_muon_for_an_adapter_is_refused() -> None:
    with pytest.raises(InputError, match="trained whole"):
        check_together(MODEL, LoraSection(), training(optimiser="muon"))
