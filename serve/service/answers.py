"""Stores verified and approved answers as cases of their tenant, and finds them by question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from warnings import warn

from casewright.stores import Case, CaseSchema, CaseStore, Encoder, Hit, text_facet
from casewright.stores.hit import Retained

#: A tenant without cases. The store is opened for it, since a tenanted store needs a tenant.
_EMPTY_TENANT = "casewright"


def _refusal_reason(case: Case) -> str | None:
    """Return the reason to refuse an answer as a case; ``None`` if the answer is accepted."""
    result: Mapping[str, Any] = case.result or {}
    solution: Mapping[str, Any] = case.solution or {}
    if not str(solution.get("answer", "")).strip():
        return "The answer is empty."
    if result.get("kept_by") == "approved":
        return None
    if result.get("fallback"):
        return "Its plan is a fallback plan."
    if result.get("missing"):
        return "A step of its plan found nothing."
    if not solution.get("citations"):
        return "It cites no evidence."
    return None


class AnswerStore:
    """The store of the retained answers of all tenants.

    All methods block the caller, since they encode texts and wait for the store.
    """

    def __init__(self, encoder: Encoder, location: str | Path) -> None:
        question = text_facet("question", encoder, inter=False)
        schema = CaseSchema("answers", (question,), verify=_refusal_reason, tenanted=True)
        self._store = CaseStore(schema, location, tenant=_EMPTY_TENANT)

    def retain(
        self, tenant: str, question: str, answer: Mapping[str, Any], retained_by: str
    ) -> Retained:
        """Retain a ``verified`` or ``approved`` answer, in JSON form, unless it must be refused."""
        cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
        case = Case(
            problem={"question": question},
            solution={
                "answer": answer["text"],
                "plan": answer["plan"],
                "citations": list(answer["citations"]),
                "sources": [item["source"] or item["tool"] for item in cited],
            },
            result={
                "kept_by": retained_by,
                "missing": list(answer["missing"]),
                "fallback": answer["planner"].get("fallback", ""),
            },
            metadata={"run_id": answer["run_id"], "provenance": "answer"},
        )
        with self._store.for_tenant(tenant) as store:
            return store.retain(case)

    def nearest(self, tenant: str, question: str) -> Hit | None:
        """Return a tenant's retained answer to the most similar question, if any."""
        with self._store.for_tenant(tenant) as store:
            hits = store.search(question, 1)
        return hits[0] if hits else None

    def all(self, tenant: str) -> list[Case]:
        """Return a tenant's retained answers, the newest first."""
        with self._store.for_tenant(tenant) as store:
            return sorted(store.all(), key=lambda case: (case.created, case.id), reverse=True)

    def get(self, tenant: str, case_id: str) -> Case | None:
        """Return a tenant's retained answer; ``None`` if there is none with this id."""
        with self._store.for_tenant(tenant) as store:
            return next(iter(store.get(case_id)), None)

    def delete(self, tenant: str, case_id: str) -> bool:
        """Delete a tenant's retained answer; return ``True`` if the answer existed."""
        with self._store.for_tenant(tenant) as store:
            exists = bool(store.get(case_id))
            store.delete(case_id)
            return exists

    def check(self) -> None:
        """Raise an error if the store does not respond."""
        self._store.count()

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def __getattr__(name: str) -> Any:
    if name != "Answers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn("Answers is now AnswerStore", DeprecationWarning, stacklevel=2)
    return AnswerStore
