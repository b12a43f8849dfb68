"""Reads and writes the file of a cross-encoder's weights: MPNet, and two affine maps to logits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError, one_line
from casewright.stores.encoders.four_bit import BLOCK, pack, unpack
from casewright.stores.encoders.onnx_graph import Floats

#: The dimension of the states.
WIDTH = 768
ATTENTION_HEADS, WORD_COUNT, MAX_LAYERS = 12, 30_527, 12
#: Maximum number of tokens of a text.
MAX_TOKENS = 512
#: Number of position embeddings at the start of their table that are not used.
UNUSED_POSITIONS = 2
#: Number of buckets into which the distances between tokens are put, in each direction.
BUCKETS = 16
#: Names of the tables of words, positions and distances, and of the first normalisation.
WORDS, POSITIONS = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
DISTANCES, NORM = "encoder.relative_attention_bias.weight", "embeddings.LayerNorm"
#: Names of the affine maps to the logits of a passage and of its tokens.
PASSAGE, TOKEN = "cls", "part"
#: Suffix of the name of a four-bit matrix's scales.
SCALE = ".scale"
#: Suffix of the name of the factors (4 * WIDTH,) by which a layer's inner states are multiplied.
SMOOTHING = ".factors"
#: Suffixes of the names of the two matrices (rank, columns) and (rows, rank) of a LoRA adapter.
LORA_A, LORA_B = ".lora_A", ".lora_B"
LORA_RANK = 16

#: Weights by their names in transformers' ``MPNetModel``. The embeddings of words have four bits
#: and scales; the layers' matrices have this form or float16; all other weights are float32. A
#: layer's matrix may have a LoRA adapter (arXiv 2106.09685, equation 3), whose product is added.
PackedWeights: TypeAlias = Mapping[str, NDArray[Any]]


class Unpacked(Mapping[str, Floats]):
    """The weights of a file as float32; each is unpacked when it is read."""

    def __init__(self, weights: PackedWeights) -> None:
        self._weights = weights

    def __getitem__(self, name: str) -> Floats:
        weight = self._weights[name]
        scales = self._weights.get(name + SCALE)
        unpacked: Floats = weight.astype(np.float32) if scales is None else unpack(weight, scales)
        if name + LORA_A in self._weights:
            lora_a, lora_b = (self._weights[name + suffix] for suffix in (LORA_A, LORA_B))
            unpacked += lora_b.astype(np.float32) @ lora_a.astype(np.float32)
        return unpacked

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._weights if not name.endswith((SCALE, LORA_A, LORA_B)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def save_weights(file: Path, weights: Mapping[str, Floats], *, four_bits: bool = False) -> None:
    """Write weights; layers' matrices have 16 bits, or ``four_bits``, which lose small changes."""
    from safetensors.numpy import save_file

    arrays: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        arrays[name] = weight
        is_matrix = name.startswith("encoder.layer.") and weight.ndim == 2
        if name == WORDS or (is_matrix and four_bits):
            arrays[name], arrays[name + SCALE] = pack(weight)
        elif is_matrix:
            arrays[name] = weight.astype(np.float16)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(arrays, file)


def read_weights(file: Path) -> PackedWeights:
    """Return the weights that ``save_weights`` wrote; raise ``InputError`` for another file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, "np") as opened:
            names = set(opened.keys())
            types = _array_types(count_layers(names), names)
            if unknown := names - types.keys():
                raise ValueError(f"the array {min(unknown)} is unknown")
            if missing := types.keys() - names:
                raise ValueError(f"the array {min(missing)} is missing")
            for name, (dtype, shape) in types.items():
                array = opened.get_slice(name)
                if (array.get_dtype(), tuple(array.get_shape())) != (dtype, shape):
                    raise ValueError(f"{name} is not an array {shape} of the type {dtype}")
            weights: dict[str, NDArray[Any]] = {name: opened.get_tensor(name) for name in types}
        for name, weight in weights.items():
            if weight.dtype != np.uint8 and not np.isfinite(weight).all():
                raise ValueError(f"{name} is not finite")
            if name.endswith(SMOOTHING) and weight.min() <= 0:
                raise ValueError(f"{name} is not positive")
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(
            f"The cross-encoder's weights {file} cannot be used: {one_line(error)}. Give a file "
            "that casewright finetune cross-encoder wrote."
        ) from error
    return weights


def count_layers(names: Collection[str]) -> int:
    """Return the number of layers of a network with weights of these names."""
    return sum(name.endswith(".intermediate.dense.bias") for name in names)


def _array_types(layers: int, names: Collection[str]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of each array of a network with this number of layers.

    A matrix is in four bits if ``names``, the names of the file's arrays, include its scales. A
    matrix has an adapter if ``names`` include the adapter's first matrix.
    """
    if not 1 <= layers <= MAX_LAYERS:
        raise ValueError(f"it has {layers} layers, not 1 to {MAX_LAYERS}")
    matrices: dict[str, tuple[int, int]] = {}
    norms = [NORM]
    for layer in (f"encoder.layer.{number}" for number in range(layers)):
        matrices |= {f"{layer}.attention.attn.{part}": (WIDTH, WIDTH) for part in "qkvo"}
        matrices[f"{layer}.intermediate.dense"] = 4 * WIDTH, WIDTH
        matrices[f"{layer}.output.dense"] = WIDTH, 4 * WIDTH
        norms += [f"{layer}.attention.LayerNorm", f"{layer}.output.LayerNorm"]
    floats: dict[str, tuple[int, ...]] = {
        POSITIONS: (MAX_TOKENS + UNUSED_POSITIONS, WIDTH),
        DISTANCES: (2 * BUCKETS, ATTENTION_HEADS),
        **{f"{name}.weight": (1, WIDTH) for name in (PASSAGE, TOKEN)},
        **{f"{name}.bias": (1,) for name in (PASSAGE, TOKEN)},
        **{f"encoder.layer.{n}.output{SMOOTHING}": (4 * WIDTH,) for n in range(layers)},
        **{f"{name}.bias": (rows,) for name, (rows, _) in matrices.items()},
        **{f"{norm}.{part}": (WIDTH,) for norm in norms for part in ("weight", "bias")},
    }
    types = {name: ("F32", shape) for name, shape in floats.items()}
    matrix_shapes = {f"{name}.weight": shape for name, shape in matrices.items()}
    for name, (rows, columns) in (matrix_shapes | {WORDS: (WORD_COUNT, WIDTH)}).items():
        if name == WORDS or name + SCALE in names:
            types[name] = "U8", (rows, columns // BLOCK, BLOCK // 2)
            types[name + SCALE] = "F16", (rows, columns // BLOCK)
        else:
            types[name] = "F16", (rows, columns)
        if name + LORA_A in names:
            types[name + LORA_A] = "F16", (LORA_RANK, columns)
            types[name + LORA_B] = "F16", (rows, LORA_RANK)
    return types
