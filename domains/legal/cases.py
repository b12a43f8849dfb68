"""The case of CBR-RAG: question, support, entities, answer, and how two are compared.

Wiratunga et al. 2024, arXiv 2404.04302.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, Encoder, text_facet
from casewright.stores.facet import component_text

#: What a problem is made of; the solution is the answer.
QA_COMPONENTS = ("question", "support", "entities")


def qa_case(
    question: str,
    support: str,
    entities: Sequence[str],
    answer: str,
    *,
    quality: float | None = None,
    **metadata: Any,
) -> Case:
    """Make a case ⟨question, support, entities, answer⟩, as CBR-RAG has them.

    Args:
        question: What was asked.
        support: The text that the answer rests on.
        entities: What the support names; none leaves the component out, so that it scores 0.
        answer: The answer.
        quality: How good the case is, where somebody measured it.
        metadata: Further fields; ``key`` names the case in citations.
    """
    problem: dict[str, Any] = {"question": question, "support": support}
    if entities:
        problem["entities"] = list(entities)
    return Case(problem=problem, solution=answer, quality=quality, metadata=metadata)


def qa_schema(
    encoder: Encoder,
    name: str = "legal",
    *,
    context: str = "support",
    weights: tuple[float, float, float] = (0.25, 0.40, 0.35),
) -> CaseSchema:
    """Return the schema of such cases: three facets, and their form in a prompt.

    Questions are compared with questions by f (intra); the query's question is compared with
    supports and entities by g (inter), which puts the encoder's cue before the query
    (section 4.2). A query that is one text stands for all three components.

    Args:
        encoder: Embeds all three; its ``cue``, where it has one, makes g of f.
        name: The schema's name.
        context: The form of a case as evidence; see ``context_text``.
        weights: Of question, support and entities; the paper's hybrid weighting by default.

    Raises:
        InputError: There is no such form.
    """
    asked, supporting, naming = weights
    return CaseSchema(
        name,
        (
            text_facet("question", encoder, weight=asked, inter=False),
            text_facet("support", encoder, weight=supporting, inter=True),
            text_facet(
                "entities",
                encoder,
                weight=naming,
                inter=True,
                describe=lambda problem: entities_text(problem["entities"]),
            ),
        ),
        support=partial(context_text, form=_known_form(context)),
        full=partial(context_text, form="full"),
    )


def context_text(case: Case, form: str = "support") -> str:
    """Return a case as a prompt shows it.

    Args:
        case: A case of ``qa_case``.
        form: ``"support"``: the support alone; ``"full"``: question, support, entities and answer
            (CBR-RAG, equation 4b); ``"qsa"``: question, support and answer, as the prompt of its
            Table 3 has them.

    Raises:
        InputError: There is no such form.
    """
    return _FORMS[_known_form(form)](case)


def entities_text(entities: Any) -> str:
    """Return a case's entities as one text; of a query, which is one already, that text."""
    if isinstance(entities, (list, tuple)):
        return ", ".join(map(component_text, entities))
    return component_text(entities)


def _support(case: Case) -> str:
    return component_text(case.problem.get("support", ""))


def _labelled(case: Case, names: Sequence[str]) -> str:
    problem = case.problem
    lines = [f"{name}: {entities_text(problem[name])}" for name in names if name in problem]
    return "\n".join([*lines, f"answer: {component_text(case.solution)}"])


def _known_form(form: str) -> str:
    if form not in _FORMS:
        raise InputError(
            f"A case has no context form {form!r}. Forms are: {', '.join(sorted(_FORMS))}."
        )
    return form


_FORMS: dict[str, Callable[[Case], str]] = {
    "support": _support,
    "full": partial(_labelled, names=QA_COMPONENTS),
    "qsa": partial(_labelled, names=("question", "support")),
}
#: The forms of a case as evidence.
CONTEXT_FORMS = tuple(sorted(_FORMS))
