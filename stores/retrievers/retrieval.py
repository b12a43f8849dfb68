"""How a store is asked on behalf of another library's retriever, and what is told of a hit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from casewright.errors import InputError
from casewright.stores.case import Case
from casewright.stores.hit import Hit
from casewright.stores.schema import CaseSchema
from casewright.stores.select import Selection
from casewright.stores.where import check_where

#: A case as text: by the schema's ``support`` or ``full``, or by a function.
CaseText = Literal["support", "full"] | Callable[[Case], str]
Share = Annotated[float, Field(ge=0, le=1)]


@runtime_checkable
class SearchedStore(Protocol):
    """What a retriever searches; a ``CaseStore``, which documents the methods, is one."""

    @property
    def schema(self) -> CaseSchema:
        """The schema of its cases."""

    @property
    def search(self) -> Callable[..., list[Hit]]:
        """Returns the best cases."""

    @property
    def select(self) -> Callable[..., Selection]:
        """Returns cases that are relevant and unlike each other."""


class Retrieval(BaseModel):
    """What a retriever asks a store for, beside the query.

    Attributes:
        k: How many cases, at least 1; fewer come back where the store holds fewer.
        weights: Facet name to weight; ``None`` uses the facets' own.
        lambda_b: Share of the relevance in the score; see ``CaseStore.search``.
        where: Metadata that a case must have, as ``CaseStore.search`` takes it.
        search_type: ``"similarity"``, the best by score, or ``"mmr"``, each relevant and unlike
            those before it (RAGSys, Algorithm 1).
        lambda_d: For ``"mmr"``: share of the score, from 0 (nothing but diversity) to 1.
        text: A case as text: the schema's ``"support"`` or ``"full"``, or a function.

    Raises:
        InputError: A setting is unknown, or no search could use it.
    """

    model_config = ConfigDict(extra="forbid")

    k: Annotated[int, Field(ge=1, strict=True)] = 4
    weights: Mapping[str, float] | None = None
    lambda_b: Annotated[float, Field(ge=0, le=2)] = 1.0
    where: Mapping[str, Any] | None = None
    search_type: Literal["similarity", "mmr"] = "similarity"
    lambda_d: Share = 0.75
    text: CaseText = "support"

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise InputError(_told(error)) from error

    @field_validator("where")
    @classmethod
    def _where_can_be_asked(cls, where: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        check_where(where)
        return where


def retrieve(store: SearchedStore, query: str, asked: Retrieval) -> list[Hit]:
    """Return a store's cases for a query, best first, or in the order of their selection.

    Raises:
        InputError: The query is no text, or a weight or condition cannot be used.
        StoreError: The store is closed, or cannot answer.
    """
    if not isinstance(query, str):
        raise InputError(
            f"A retriever was asked with {query!r:.200}. Ask with a text; CaseStore.search takes a "
            "problem's components."
        )
    shared: dict[str, Any] = {
        "weights": asked.weights,
        "lambda_b": asked.lambda_b,
        "where": asked.where,
    }
    if asked.search_type == "similarity":
        return store.search(query, asked.k, **shared)
    return store.select(query, asked.k, lambda_d=asked.lambda_d, **shared).hits


def case_text(case: Case, schema: CaseSchema, text: CaseText) -> str:
    """Return a case as text.

    Raises:
        InputError: The function for it returned no text.
    """
    written = {"support": schema.support, "full": schema.full}
    made = (text if callable(text) else written[text])(case)
    if not isinstance(made, str):
        raise InputError(
            f"The text of case {case.id} is {made!r:.200}. The function that makes it must return "
            "a str."
        )
    return made


def hit_metadata(
    hit: Hit, more: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return a case's metadata with how it was found, and the names of what was added.

    Added are ``score``, ``relevance``, ``facet_scores``, ``case_id``, and what is given. Where the
    case has a field of such a name, its own stays, and the added one goes by ``hit_`` and the name.
    """
    found: dict[str, Any] = {
        "score": hit.score,
        "relevance": hit.relevance,
        "facet_scores": dict(hit.facet_scores),
        "case_id": hit.case.id,
        **(more or {}),
    }
    told: dict[str, Any] = dict(hit.case.metadata)
    added = []
    for wanted, value in found.items():
        name = wanted
        while name in told:
            name = f"hit_{name}"
        told[name] = value
        added.append(name)
    return told, added


def _told(error: ValidationError) -> str:
    wrong: dict[str, list[str]] = {}
    for one in error.errors():
        name = str(one["loc"][0]) if one["loc"] else ""
        given = f"{name}={one['input']!r:.200}" if one["type"] != "missing" else name
        wrong.setdefault(given, []).append(one["msg"].removeprefix("Value error, ").rstrip("."))
    told = "; ".join(f"{given}: {', or '.join(reasons)}" for given, reasons in wrong.items())
    return f"The retriever cannot be used as set up: {told}."
