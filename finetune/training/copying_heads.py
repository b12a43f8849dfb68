"""A new network whose heads copy from the start.

What a planner does most is copy: a tool's name from the list, a plan's shape from an example, words
from the question. Networks learn it by pairs of heads that form late in training (induction heads:
Olsson et al. 2022, "In-context Learning and Induction Heads"), later than some hours on a CPU
allow. Here such a pair is written into the weights before training, in the spirit of Trockman &
Kolter (2023, "Mimetic Initialization of Self-Attention Layers"), and is trained like the rest:

- the first head of layer 0 looks at the token before, and leaves a code of it in the last numbers
  of a state;
- the first head of layer 1 looks for places whose code is the present token's, and adds the vector
  of the token there: what followed this token earlier is likely to follow it now.

Vectors of tokens are large beside what the random layers add, so that steps of training do not
drown the codes before they are of use; the last norm is small for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Rotary frequencies, in radians a token: from ``_FAST`` on they tell a place from the next, from
#: ``_FASTEST`` on sharply; below ``_SLOW`` they do not tell places apart within a prompt.
_FAST, _FASTEST, _SLOW = 0.004, 0.08, 0.001
#: Weights of the two heads: position (twice), code, match, copy. What was random in them is kept
#: at a tenth.
_NEAR, _NEARER, _CODE, _MATCH, _COPY, _REST = 2.5, 3.5, 0.7, 2.0, 1.5, 0.1
#: Of the last norm: logits of some ten where a state is a token's vector.
_LAST_NORM = 0.04


def write_copying_heads(network: Any, seed: int = 0) -> None:
    """Write the two heads into a new Mistral whose weights are random.

    Args:
        network: A ``MistralForCausalLM`` of two layers or more, with tied embeddings. All vectors
            of tokens get one length, a common first number, and zeros where codes stand.
        seed: Of the codes.
    """
    import torch

    config = network.config
    size = config.hidden_size // config.num_attention_heads
    angles = _angles(float(config.rope_parameters["rope_theta"]), size)
    with torch.no_grad():
        vectors = network.get_input_embeddings().weight
        code = _codes(vectors, size, torch.Generator().manual_seed(seed))
        network.base_model.norm.weight.fill_(_LAST_NORM)
        layers = network.base_model.layers
        _look_back(layers[0].self_attn, size, angles, code)
        _look_up(layers[1].self_attn, size, angles, code)


def _angles(base: float, size: int) -> list[float]:
    half = size // 2
    return [base ** (-place / half) for place in range(half)]


def _codes(vectors: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """Change token vectors (tokens, hidden) in place; return what makes codes of them.

    The codes are random projections of whitened vectors, (size, hidden - size - 1): those of two
    tokens are as unlike as can be.
    """
    import torch

    vectors[:, -size:] = 0
    vectors[:, 0] = 0
    vectors /= vectors.pow(2).mean(1, keepdim=True).sqrt().clamp_min(1e-6)
    # The same for all tokens: by it a head can look at a place whatever stands there.
    vectors[:, 0] = 2
    lengths = vectors.pow(2).mean(1, keepdim=True).sqrt()
    spread = (vectors / lengths)[:, 1:-size].std(0).clamp_min(1e-3)
    drawn = torch.randn(size, len(spread), generator=generator)
    codes: torch.Tensor = drawn / spread / math.sqrt(len(spread))
    return codes


def _look_back(heads: Any, size: int, angles: list[float], code: torch.Tensor) -> None:
    for part in (heads.q_proj, heads.k_proj, heads.v_proj):
        part.weight[:size] *= _REST
    for place, angle in enumerate(angles):
        if angle > _FAST:
            weight = _NEARER if angle > _FASTEST else _NEAR
            heads.k_proj.weight[place, 0] = weight
            # Turned back by one token: a query meets the key that is one token behind.
            heads.q_proj.weight[place, 0] = weight * math.cos(angle)
            heads.q_proj.weight[place + len(angles), 0] = -weight * math.sin(angle)
    heads.v_proj.weight[:size, 1:-size] = code
    _write(heads.o_proj.weight, -size, size, _CODE)


def _look_up(heads: Any, size: int, angles: list[float], code: torch.Tensor) -> None:
    for part in (heads.q_proj, heads.k_proj, heads.v_proj):
        part.weight[:size] *= _REST
    slow = [place for place, angle in enumerate(angles) if angle < _SLOW]
    hidden = heads.q_proj.weight.shape[1]
    for number, place in enumerate([*slow, *(place + len(angles) for place in slow)]):
        heads.k_proj.weight[place, hidden - size + number] = _MATCH
        heads.q_proj.weight[place, 1:-size] = _MATCH * code[number]
    for place in range(size - 1):
        heads.v_proj.weight[place, 1 + place] = 1
    _write(heads.o_proj.weight, 1, size - 1, _COPY)


def _write(output: torch.Tensor, start: int, count: int, weight: float) -> None:
    """Let the first head add its first ``count`` numbers to a state from ``start`` on."""
    first = start % output.shape[0]
    for place in range(count):
        output[first + place, place] = weight
