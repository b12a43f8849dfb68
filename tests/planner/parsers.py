"""An untrained plan parser with a tiny encoder: what it plans is arbitrary, and has to be valid."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertModel

from casewright.planner.parser.eager_network import EagerNetwork
from casewright.planner.parser.parser_network import ParserNetwork
from casewright.planner.parser.reading import ArrayNetwork
from casewright.planner.parser.runtime import ParserRuntime


def untrained(seed: int = 0) -> ParserNetwork:
    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32
    )
    config._attn_implementation = "eager"
    return ParserNetwork(BertModel(config)).eval()


def runtime(seed: int = 0) -> ParserRuntime:
    weights = untrained(seed).state_dict()
    return ParserRuntime(ArrayNetwork({name: one.numpy() for name, one in weights.items()}))


def eager_runtime(seed: int = 0) -> ParserRuntime:
    return ParserRuntime(EagerNetwork(untrained(seed)))
