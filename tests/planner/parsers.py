"""An untrained plan parser with a tiny encoder: what it plans is arbitrary, and has to be valid."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertModel

from casewright.planner.parser.parser_network import ParserNetwork
from casewright.planner.parser.runtime_network import ParserRuntime, parser_tokenizer


def untrained(seed: int = 0) -> ParserNetwork:
    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config._attn_implementation = "eager"
    return ParserNetwork(BertModel(config)).eval()


def runtime(seed: int = 0) -> ParserRuntime:
    return ParserRuntime(untrained(seed), parser_tokenizer())
