"""A facet: one way in which cases are compared (MCBR-RAG, Marom 2024, section 3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import InputError
from casewright.stores.case import Binary, check_text
from casewright.stores.encoder import Encoder

Components = Mapping[str, Any]
Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[Components]], Vectors]


@dataclass(frozen=True, slots=True)
class Facet:
    """How cases are compared in one respect.

    Attributes:
        name: The facet's name; scores and weights go by it.
        components: The problem components that it reads. A case that lacks one of them has no
            part in this facet: its vector is zeros and it scores 0.
        dimension: Length of its vectors.
        embed_case: L_j for stored cases: n components in, array (n, dimension) out; the store
            scales each row to unit length.
        embed_query: L_j for queries; differs from ``embed_case`` where a cue makes an
            inter-embedding (CBR-RAG's g).
        describe: T_j, the components as text for a prompt.
        model: Identifies what embeds; a collection is opened only with the one that built it.
        weight: Weight when a search names none, at least 0.
    """

    name: str
    components: tuple[str, ...]
    dimension: int
    embed_case: Embed
    embed_query: Embed
    describe: Callable[[Components], str]
    model: str = ""
    weight: float = 1.0

    def reads(self, problem: Components) -> bool:
        """Say whether the problem has every component that this facet reads, none of them empty."""
        read = (problem.get(name) for name in self.components)
        # An array compares to a text by its elements, so the type is asked first.
        return all(part is not None and not (isinstance(part, str) and not part) for part in read)

    def vectors(self, problems: Sequence[Components], *, query: bool = False) -> Vectors:
        """Embed problems as unit vectors, array (n, dimension); absent components as zeros.

        Raises:
            InputError: The embedding is no array of the declared shape, or is not finite.
        """
        out = np.zeros((len(problems), self.dimension), dtype=np.float32)
        present = [row for row, problem in enumerate(problems) if self.reads(problem)]
        if not present:
            return out
        embed = self.embed_query if query else self.embed_case
        answer = embed([problems[row] for row in present])
        try:
            # What is too large for a float32 becomes infinity, and is refused below.
            with np.errstate(over="ignore"):
                made = np.asarray(answer, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Facet {self.name!r} embedded {len(present)} problems as what is no array of "
                f"numbers: {error}. Expected shape {(len(present), self.dimension)}."
            ) from error
        if made.shape != (len(present), self.dimension):
            raise InputError(
                f"Facet {self.name!r} embedded {len(present)} problems as an array of shape "
                f"{made.shape}; expected {(len(present), self.dimension)}. One row a problem."
            )
        if not np.isfinite(made).all():
            row = int(np.flatnonzero(~np.isfinite(made).all(axis=1))[0])
            raise InputError(
                f"Facet {self.name!r} embedded {dict(problems[present[row]])!r:.200} with NaN or "
                "infinity. Its embedding must be finite."
            )
        # The square of a float32 may be too large, or too small, for another one.
        exact = made.astype(np.float64)
        lengths = np.linalg.norm(exact, axis=1, keepdims=True)
        out[present] = exact / np.maximum(lengths, np.finfo(np.float64).tiny)
        return out


def component_text(value: Any) -> str:
    """Return the text form of a component: text as it is, a binary by its type, else JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Binary):
        return f"[{value.media_type}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def text_facet(
    name: str,
    encoder: Encoder,
    components: Sequence[str] = (),
    *,
    weight: float = 1.0,
    cue: str = "",
    describe: Callable[[Components], str] | None = None,
) -> Facet:
    """Build a facet that compares components by the embedding of their text.

    Args:
        name: The facet's name, and its component's where ``components`` is empty.
        encoder: Turns texts into vectors.
        components: The components it reads; their texts are joined by new lines.
        weight: Default weight.
        cue: Text put before a query, and not before a case (CBR-RAG's g, section 4.2).
        describe: Another text form of the components than the joined one.
    """
    read = tuple(components) or (name,)

    def text(problem: Components) -> str:
        if describe is not None:
            return describe(problem)
        return "\n".join(component_text(problem[component]) for component in read)

    def embed(problems: Sequence[Components], before: str = "") -> Vectors:
        texts = [before + text(problem) for problem in problems]
        for made in texts:
            check_text(made)
        return encoder.embed(texts)

    return Facet(
        name=name,
        components=read,
        dimension=encoder.dimension,
        embed_case=embed,
        embed_query=lambda problems: embed(problems, cue),
        describe=text,
        model=encoder.name,
        weight=weight,
    )
