"""The reader's network, which decodes the sub-queries of a message and their literals.

A sentence encoder with LoRA adapters (Hu et al. 2021) returns a state for each token. A decoder of
one layer attends to the states and returns a unit vector for each sub-query, the latent. Latents
are close if their sub-queries have the same template (a part of a plan without literals), so plan
cases can also be retrieved by latents. Pointers find literals as spans of the message (Vinyals et
al. 2015, "Pointer Networks").

This module imports torch and is for training; ``reader_layers`` is used for inference.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from casewright.planner.reader_input import MAX_SLOTS, MAX_SUB_QUERIES
from casewright.planner.reader_layers import SHARPNESS

#: Number of dimensions of a latent, and of a pointer's keys and queries.
LATENT_SIZE, KEY_SIZE = 128, 128


class ReaderNetwork(nn.Module):
    """Encoder, decoder and pointers.

    Template numbers: 0 is the end of the message, 1 to ``templates`` are the trained templates,
    ``templates + 1`` is any other template, ``templates + 2`` the start. For the files, weights
    keep old names: ``form`` for template, ``place`` for position, ``asked`` for query.

    Args:
        encoder: A BERT-like model with hidden states as its first output.
        templates: Number of trained templates; each has a prototype, a learned latent.
    """

    def __init__(self, encoder: Any, templates: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        size = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.unknown, self.start = templates + 1, templates + 2
        self.form = nn.Embedding(templates + 3, size)
        self.place = nn.Embedding(MAX_SUB_QUERIES + 1, size)
        self.slot = nn.Embedding(MAX_SLOTS, size)
        for table in (self.form, self.place, self.slot):
            nn.init.normal_(table.weight, std=0.05)
        self.memory = nn.LayerNorm(size)
        self.decoder = nn.TransformerDecoderLayer(
            size, size // 64, 2 * size, dropout, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(size)
        self.out = nn.Linear(size, LATENT_SIZE)
        self.prototypes = nn.Parameter(torch.randn(templates + 1, LATENT_SIZE))
        self.bias = nn.Parameter(torch.zeros(templates + 2))
        self.mix = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.Linear(size, size))
        self.asked = nn.ModuleList([nn.Linear(size, KEY_SIZE) for _ in range(2)])
        self.keys = nn.ModuleList([nn.Linear(size, KEY_SIZE) for _ in range(2)])

    def encode(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Return token states (batch, width, size)."""
        states: Tensor = self.encoder(input_ids=ids, attention_mask=mask, token_type_ids=types)[0]
        return states

    def decode(
        self, states: Tensor, mask: Tensor, previous_templates: Tensor, literal_weights: Tensor
    ) -> Tensor:
        """Return the decoder's state for each sub-query, array (batch, positions, size).

        Args:
            states: Token states (batch, width, size).
            mask: 1 for tokens, 0 for padding (batch, width).
            previous_templates: Template number of the sub-query before each position, or the start
                (batch, positions).
            literal_weights: Token weights for the literals of the sub-query before each position
                (batch, positions, width).
        """
        length, device = previous_templates.shape[1], previous_templates.device
        position_inputs = self.place(torch.arange(length, device=device))
        decoder_inputs = self.form(previous_templates) + position_inputs + literal_weights @ states
        causal_mask = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        outputs = self.decoder(
            decoder_inputs,
            self.memory(states),
            tgt_mask=causal_mask,
            memory_key_padding_mask=mask == 0,
        )
        decoded: Tensor = self.norm(outputs)
        return decoded

    def latents(self, decoded: Tensor) -> Tensor:
        """Return the sub-queries' latents, unit vectors (…, LATENT_SIZE)."""
        return functional.normalize(self.out(decoded), dim=-1)

    def scores(self, latents: Tensor) -> Tensor:
        """Return logits of the message's end, then of each template (…, templates + 1)."""
        cosines = latents @ functional.normalize(self.prototypes, dim=-1).T
        return SHARPNESS * cosines + self.bias[:-1]

    def example_scores(self, latents: Tensor, examples: Tensor) -> Tensor:
        """Return logits of templates that have an example's latent instead of a prototype."""
        return SHARPNESS * (latents @ examples.transpose(-1, -2)) + self.bias[-1]

    def point(
        self, decoded: Tensor, template: Tensor, slot: Tensor, states: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return each token's logits as start and as end of a literal: two arrays (batch, width).

        Args:
            decoded: The sub-query's state (batch, size).
            template: Number of the sub-query's template (batch,).
            slot: Index of the literal in the template (batch,).
            states: Token states (batch, width, size).
        """
        literal_input = self.form(template) + self.slot(slot)
        pointer_state = self.mix(torch.cat([decoded, literal_input], dim=-1))
        start, end = (
            (to_keys(states) @ to_query(pointer_state).unsqueeze(-1)).squeeze(-1) / KEY_SIZE**0.5
            for to_query, to_keys in zip(self.asked, self.keys, strict=True)
        )
        return start, end
