"""The bench of training, with a network that is made in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from casewright.bench import training as module
from casewright.bench.report import Report
from casewright.bench.training import SYSTEMS, TrainingTrial, measure_training
from casewright.errors import InputError

#: TRL computes in 16 bits by default, which a CPU does slowly.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def measured(home: Path) -> Iterator[Report]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CASEWRIGHT_HOME", str(home))
        # Three processes would take most of the time to import.
        patch.setattr(module, "_trained", module.train_once)
        yield measure_training(TrainingTrial("tiny", "tiny", examples=1, device="cpu"))


def test_all_systems_train_on_the_same_tokens_from_the_same_loss(measured: Report) -> None:
    assert [row["system"] for row in measured.rows] == list(SYSTEMS)
    assert len({row["loss before"] for row in measured.rows}) == 1
    assert measured.settings["examples"] == 1
    assert measured.settings["tokens"] > 200


def test_the_systems_are_the_recipe_and_trls_defaults(measured: Report) -> None:
    own, defaults, same = (measured.settings["systems"][name] for name in SYSTEMS)
    assert (own["batch_per_device"], own["autocast_bf16"]) == (4, False)
    assert (defaults["batch_per_device"], defaults["autocast_bf16"]) == (8, True)
    assert (defaults["packing"], defaults["gradient_checkpointing"]) == (False, True)
    assert own["max_length"] == defaults["max_length"]
    assert same == defaults
    weights = [row["trained weights"] for row in measured.rows]
    assert weights[1] < weights[0] == weights[2]


def test_ratios_are_those_of_the_figures(measured: Report) -> None:
    figures = measured.figures
    ratio = figures["tokens_per_s_recipe"] / figures["tokens_per_s_trl_defaults"]
    assert figures["ratio_tokens_per_s_recipe_over_trl_defaults"] == ratio > 0
    assert all(value > 0 for value in figures.values())


def test_systems_that_trained_on_different_examples_are_not_compared() -> None:
    run = {"examples": 3, "tokens_given": 10, "tokens": 10, "loss_before": 5.0}
    module._check_same({"one": [run], "other": [run]})
    for other in ({"tokens": 9}, {"loss_before": 5.1}):
        with pytest.raises(InputError, match="cannot be compared"):
            module._check_same({"one": [run], "other": [{**run, **other}]})


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InputError, match="huge"):
        TrainingTrial(size="huge")
