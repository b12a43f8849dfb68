"""Plan parsers: untrained ones with a tiny encoder and arbitrary plans, and the trained one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch

from casewright.planner.parser.parser_network import ParserNetwork
from casewright.planner.parser.reading import ArrayNetwork
from casewright.planner.parser.runtime import ParserRuntime
from casewright.planner.parser.weights import FOLDER, trained_weights
from casewright.stores.encoders.minilm import packaged_minilm
from tests.planner.eager_network import EagerNetwork


def untrained(seed: int = 0) -> ParserNetwork:
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32
    )
    config._attn_implementation = "eager"
    return ParserNetwork(BertModel(config)).eval()


def runtime(seed: int = 0) -> ParserRuntime:
    weights = untrained(seed).state_dict()
    arrays = {name: weight.numpy() for name, weight in weights.items()}
    return ParserRuntime(ArrayNetwork(arrays, bits=32))


def trained(folder: Path = FOLDER) -> ParserNetwork:
    from transformers import AutoModel

    base = AutoModel.from_pretrained(str(packaged_minilm()), attn_implementation="eager")
    network = ParserNetwork(base)
    network.load_state_dict(network.state_dict() | trained_weights(folder))
    return network.eval()


def eager_runtime(network: ParserNetwork) -> ParserRuntime:
    """Return a parser that runs torch's modules: the reference for the one by arrays."""
    return ParserRuntime(cast(ArrayNetwork, EagerNetwork(network)))
