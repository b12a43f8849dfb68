"""A facet: one way to compare cases (MCBR-RAG, Marom 2024, section 3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casewright.errors import CasewrightError, DependencyError, FacetError, InputError, one_line
from casewright.stores.case import Binary, check_text
from casewright.stores.encoders.encoder import Encoder, float_rows

#: The components of a case's problem, by name.
Components = Mapping[str, Any]
Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[Components]], Vectors]


@dataclass(frozen=True, slots=True)
class Facet:
    """A way to compare cases.

    Attributes:
        name: The facet's name in scores and weights.
        components: The problem components that the facet reads, of any modality. A case that lacks
            a required component has a vector of zeros and scores 0.
        dimension: Length of the facet's vectors.
        embed_case: Embeds the problems of stored cases (L_j in the paper): maps n problems to an
            array or tensor (n, dimension), whose rows the store scales to unit length.
        embed_query: Embeds queries, like ``embed_case`` or otherwise, as with a cue before a text.
        describe: Returns the components as text for a prompt (T_j in the paper).
        model: The embedding model's name; a collection opens only with the model that built it.
        weight: Default weight in a search, at least 0.
        optional: Components that a problem may lack (MCBR-RAG, note 6).
        takes_text: True if a query that is a single text is taken as the value of every component.
            ``False`` for a facet of another modality, which ignores a single text.
        encoder: The encoder of the facet's texts, if it has one.
    """

    name: str
    components: tuple[str, ...]
    dimension: int
    embed_case: Embed
    embed_query: Embed
    describe: Callable[[Components], str]
    model: str = ""
    weight: float = 1.0
    optional: tuple[str, ...] = ()
    takes_text: bool = True
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.dimension, int) or self.dimension < 1:
            advice = "Give the length of its embeddings, at least 1."
            raise InputError(f"Facet {self.name!r} has dimension {self.dimension}. {advice}")
        if unknown := sorted(set(self.optional) - set(self.components)):
            problem = f"Facet {self.name!r} has optional {unknown}, which it does not read."
            raise InputError(f"{problem} It reads {list(self.components)}.")
        if set(self.components) <= set(self.optional):
            raise InputError(
                f"Facet {self.name!r} reads the components {list(self.components)}, of which "
                f"{list(self.optional)} are optional. It needs at least one that is not."
            )

    def reads(self, problem: Components) -> bool:
        """Return ``True`` if the problem has a value for every required component."""
        return all(_has_value(problem.get(n)) for n in self.components if n not in self.optional)

    def vectors(self, problems: Sequence[Components], *, query: bool = False) -> Vectors:
        """Return unit vectors of problems, or of queries if ``query``: array (n, dimension).

        A problem that lacks a required component gets zeros. Raise ``FacetError`` if an embedding
        fails or is not finite, ``InputError`` for a wrong shape; ``DependencyError`` is passed on.
        """
        unit_vectors = np.zeros((len(problems), self.dimension), dtype=np.float32)
        row_numbers = [row for row, problem in enumerate(problems) if self.reads(problem)]
        if not row_numbers:
            return unit_vectors
        embed = self.embed_query if query else self.embed_case
        readable_problems = [problems[row] for row in row_numbers]

        def facet_error(index: int, verb: str, reason: str) -> FacetError:
            text = f"Facet {self.name!r} {verb} {dict(readable_problems[index])!r:.200}{reason}"
            return FacetError(text, self.name, row_numbers[index])

        try:
            embeddings = embed(readable_problems)
        except DependencyError:
            raise
        except Exception as error:  # noqa: BLE001
            index, failure = _first_failure(embed, readable_problems, error)
            reason = (
                str(failure) if isinstance(failure, CasewrightError) else f"{one_line(failure)}."
            )
            raise facet_error(index, "cannot embed", f": {reason}") from failure
        message_start = f"Facet {self.name!r} embedded {len(row_numbers)} problems"
        rows = float_rows(embeddings, len(row_numbers), self.dimension, message_start)
        if not (finite := np.isfinite(rows).all(axis=1)).all():
            reason = " with NaN or infinity. Its embedding must be finite."
            raise facet_error(int(finite.argmin()), "embedded", reason)
        # The square of a float32 may overflow or underflow in single precision.
        doubles = rows.astype(np.float64)
        lengths = np.linalg.norm(doubles, axis=1, keepdims=True)
        unit_vectors[row_numbers] = doubles / np.maximum(lengths, np.finfo(np.float64).tiny)
        return unit_vectors


def component_text(value: Any) -> str:
    """Return the text form of a component: a text unchanged, a binary's media type, else JSON."""
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
    inter: bool = True,
    cue: str | None = None,
    describe: Callable[[Components], str] | None = None,
) -> Facet:
    """Return a facet that compares components by the embedding of their text.

    Args:
        name: The facet's name; also the component's name if ``components`` is empty.
        components: The components to read; their texts are joined by line breaks.
        inter: True if queries and cases are different kinds of texts, such as questions and
            passages; ``embed_queries`` then embeds queries, with the encoder's cue. ``False``: the
            queries are embedded like cases. See CBR-RAG, section 4.2, on inter and intra.
        cue: Text before a query, instead of the encoder's cue.
        describe: Returns a problem's text, to be embedded instead of the joined texts.
    """
    if isinstance(components, str):
        problem = f"text_facet {name!r} was given components={components!r}."
        raise InputError(f"{problem} Give a list of names: [{components!r}].")
    names = tuple(components) or (name,)
    encoder_cue = getattr(encoder, "cue", "") if inter else ""
    query_cue = encoder_cue if cue is None else cue
    embed_queries = getattr(encoder, "embed_queries", encoder.embed) if inter else encoder.embed

    def problem_text(problem: Components) -> str:
        if describe is not None:
            return describe(problem)
        return "\n".join(component_text(problem[component]) for component in names)

    def encoder_inputs(problems: Sequence[Components], prefix: str = "") -> list[str]:
        cued_texts = [prefix + problem_text(problem) for problem in problems]
        for cued_text in cued_texts:
            check_text(cued_text)
        return cued_texts

    return Facet(
        name=name,
        components=names,
        dimension=encoder.dimension,
        embed_case=lambda problems: encoder.embed(encoder_inputs(problems)),
        embed_query=lambda problems: embed_queries(encoder_inputs(problems, query_cue)),
        describe=problem_text,
        model=encoder.name,
        weight=weight,
        encoder=encoder,
    )


def _has_value(component: Any) -> bool:
    # Only a text or None is tested, since an array has no single truth value.
    return bool(component) if isinstance(component, str | None) else True


def _first_failure(
    embed: Embed, problems: Sequence[Components], error: Exception
) -> tuple[int, Exception]:
    """Return the index and the error of the first problem that fails, found by bisection."""
    start, end = 0, len(problems)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            embed(problems[start:middle])
        except Exception as failure:  # noqa: BLE001
            end, error = middle, failure
        else:
            start = middle
    return start, error
