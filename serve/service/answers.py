"""Answers as cases of their tenant: kept once verified or approved, found by like questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewright.stores import Case, CaseSchema, CaseStore, Encoder, Hit, text_facet
from casewright.stores.hit import Retained

#: The store is opened for one tenant, as its schema asks; this one is nobody's.
_KEEPER = "casewright"


def answers_schema(encoder: Encoder) -> CaseSchema:
    """Return the schema of kept answers: compared by their questions, each its tenant's own."""
    return CaseSchema(
        "answers",
        (text_facet("question", encoder, inter=False),),
        verify=why_not,
        tenanted=True,
    )


def why_not(case: Case) -> str | None:
    """Return why an answer may not be kept: it is neither approved nor borne out by its run."""
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


def answer_case(question: str, answer: Mapping[str, Any], kept_by: str) -> Case:
    """Return an answer as a case.

    Args:
        question: What was asked.
        answer: The JSON form of the ``Answer``.
        kept_by: ``verified``, or ``approved`` by its user.
    """
    cited = [item for item in answer["evidence"] if item["id"] in answer["citations"]]
    return Case(
        problem={"question": question},
        solution={
            "answer": answer["text"],
            "plan": answer["plan"],
            "citations": list(answer["citations"]),
            "sources": [item["source"] or item["tool"] for item in cited],
        },
        result={
            "kept_by": kept_by,
            "missing": list(answer["missing"]),
            "fallback": answer["planner"].get("fallback", ""),
        },
        metadata={"run_id": answer["run_id"], "provenance": "answer"},
    )


class Answers:
    """The kept answers of all tenants; every call is about one of them.

    Its calls block: they encode, and wait for the store.
    """

    def __init__(self, encoder: Encoder, location: str | Path) -> None:
        self._store = CaseStore(answers_schema(encoder), location, tenant=_KEEPER)

    def retain(
        self, tenant: str, question: str, answer: Mapping[str, Any], kept_by: str
    ) -> Retained:
        """Keep an answer, if it is approved or its run bears it out."""
        with self._store.for_tenant(tenant) as own:
            return own.retain(answer_case(question, answer, kept_by))

    def nearest(self, tenant: str, question: str) -> Hit | None:
        """Return the kept answer whose question is most like this one."""
        with self._store.for_tenant(tenant) as own:
            hits = own.search(question, 1)
        return hits[0] if hits else None

    def all(self, tenant: str) -> list[Case]:
        """Return a tenant's kept answers, the newest first."""
        with self._store.for_tenant(tenant) as own:
            return sorted(own.all(), key=lambda case: (case.created, case.id), reverse=True)

    def get(self, tenant: str, case_id: str) -> Case | None:
        """Return a tenant's kept answer; ``None`` where there is none, or it is another's."""
        with self._store.for_tenant(tenant) as own:
            return next(iter(own.get(case_id)), None)

    def delete(self, tenant: str, case_id: str) -> bool:
        """Remove a tenant's kept answer; says whether there was one."""
        with self._store.for_tenant(tenant) as own:
            found = bool(own.get(case_id))
            own.delete(case_id)
            return found

    def check(self) -> None:
        """Raise where the store does not answer."""
        self._store.count()

    def close(self) -> None:
        """Close the store."""
        self._store.close()
