"""Searches a store for the retrievers of other libraries, and makes the metadata of hits."""

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

#: The text form of a case: the schema's ``support`` or ``full``, or a function.
CaseText = Literal["support", "full"] | Callable[[Case], str]
Share = Annotated[float, Field(ge=0, le=1)]


@runtime_checkable
class SearchedStore(Protocol):
    """A store to search; ``CaseStore`` implements and documents this protocol."""

    @property
    def schema(self) -> CaseSchema:
        """The schema of the store's cases."""

    @property
    def search(self) -> Callable[..., list[Hit]]:
        """The method that returns the best cases."""

    @property
    def select(self) -> Callable[..., Selection]:
        """The method that selects cases that are relevant and unlike each other."""


class Retrieval(BaseModel):
    """Settings of a retriever's searches.

    Attributes:
        k: The number of cases, at least 1 and at most the number in the store.
        weights: The weights of facets by name; ``None`` uses the facets' default weights.
        lambda_b: Share of the relevance in the score; see ``CaseStore.search``.
        where: A condition on the metadata; see ``CaseStore.search``.
        search_type: ``"similarity"`` for the cases with the best scores, or ``"mmr"`` for relevant
            cases that are unlike each other (RAGSys, Algorithm 1).
        lambda_d: For ``"mmr"``, the score's share, from 0 (only diversity) to 1 (no diversity).
        text: A case's text: the schema's ``"support"`` or ``"full"``, or a function.

    Raises:
        InputError: A setting is unknown or invalid.
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
            raise InputError(_settings_message(error)) from error

    @field_validator("where")
    @classmethod
    def _check_where_setting(cls, where: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        check_where(where)
        return where


def retrieve(store: SearchedStore, query: str, retrieval: Retrieval) -> list[Hit]:
    """Return cases, the best first; raise ``InputError`` if the query is not a text."""
    if not isinstance(query, str):
        raise InputError(
            f"A retriever was given the query {query!r:.200}. Give a text; "
            "CaseStore.search takes a problem's components."
        )
    names = ("weights", "lambda_b", "where")
    shared_settings: dict[str, Any] = {name: getattr(retrieval, name) for name in names}
    if retrieval.search_type == "similarity":
        return store.search(query, retrieval.k, **shared_settings)
    return store.select(query, retrieval.k, lambda_d=retrieval.lambda_d, **shared_settings).hits


def case_text(case: Case, schema: CaseSchema, form: CaseText) -> str:
    """Return a case as text; raise ``InputError`` if a function returns anything but a text."""
    schema_forms = {"support": schema.support, "full": schema.full}
    text = (form if callable(form) else schema_forms[form])(case)
    if not isinstance(text, str):
        raise InputError(
            f"The text of case {case.id} is {text!r:.200}. The function that makes it must "
            "return a str."
        )
    return text


def hit_metadata(
    hit: Hit, extra: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return a case's metadata with added fields, and the names of the added fields.

    The hit's scores, the case's id and ``extra`` are added; a field whose name is taken has the
    prefix ``hit_``.
    """
    hit_fields: dict[str, Any] = {
        "score": hit.score,
        "relevance": hit.relevance,
        "facet_scores": dict(hit.facet_scores),
        "case_id": hit.case.id,
        **(extra or {}),
    }
    metadata: dict[str, Any] = dict(hit.case.metadata)
    for name, value in hit_fields.items():
        while name in metadata:
            name = f"hit_{name}"
        metadata[name] = value
    return metadata, [name for name in metadata if name not in hit.case.metadata]


def _settings_message(error: ValidationError) -> str:
    reasons: dict[str, list[str]] = {}
    for item in error.errors():
        name = str(item["loc"][0]) if item["loc"] else ""
        setting = f"{name}={item['input']!r:.200}" if item["type"] != "missing" else name
        message = item["msg"].removeprefix("Value error, ").rstrip(".")
        reasons.setdefault(setting, []).append(message)
    text = "; ".join(f"{setting}: {', or '.join(texts)}" for setting, texts in reasons.items())
    return f"The retriever cannot be used as set up: {text}."
