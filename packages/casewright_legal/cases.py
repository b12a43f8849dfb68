"""CBR-RAG's cases (question, support, entities, answer), and their similarity to a query.

CBR-RAG is a paper: Wiratunga et al. 2024, arXiv 2404.04302.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from casewright.errors import InputError
from casewright.stores import Case, CaseSchema, Encoder, text_facet
from casewright.stores.facet import component_text

#: The components of a problem; the solution is the answer.
QA_COMPONENTS = ("question", "support", "entities")
#: The components that a form of a case in a prompt shows with labels, before the answer. The form
#: ``support`` shows only the support's text, without a label.
_LABELLED: dict[str, tuple[str, ...]]
_LABELLED = {"full": QA_COMPONENTS, "qsa": ("question", "support"), "support": ()}
CONTEXT_FORMS = tuple(_LABELLED)


def qa_case(
    question: str,
    support: str,
    entities: Sequence[str],
    answer: str,
    *,
    quality: float | None = None,
    **metadata: Any,
) -> Case:
    """Return a case ⟨question, support, entities, answer⟩ of CBR-RAG.

    Args:
        support: The text that supports the answer.
        entities: The entities of the support; without entities, the component is left out and its
            facet scores 0.
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
    """Return the schema of CBR-RAG's cases: three facets, and the form of a case in a prompt.

    A query is compared with questions as a text of the same kind. For the comparison with supports
    and entities, the encoder's retrieval instruction is put before the query (section 4.2). A query
    that is a text is compared by all three facets.

    Args:
        context: The form of a case as evidence; see ``context_text``.
        weights: Weights of question, support and entities; by default the paper's best weights.
    """
    question_weight, support_weight, entities_weight = weights
    inter_facet = partial(text_facet, encoder=encoder, inter=True)
    facets = (
        text_facet("question", encoder, weight=question_weight, inter=False),
        inter_facet("support", weight=support_weight),
        inter_facet(
            "entities",
            weight=entities_weight,
            describe=lambda problem: joined_text(problem["entities"]),
        ),
    )
    evidence_text = partial(context_text, form=_checked_form(context))
    full_text = partial(context_text, form="full")
    return CaseSchema(name, facets, support=evidence_text, full=full_text)


def context_text(case: Case, form: str = "support") -> str:
    """Return a case of ``qa_case`` as text for a prompt; raise ``InputError`` for unknown forms.

    Args:
        form: ``"support"`` is only the support. ``"full"`` has question, support, entities and
            answer (CBR-RAG, equation 4b). ``"qsa"`` has question, support and answer (Table 3).
    """
    names = _LABELLED[_checked_form(form)]
    if not names:
        return component_text(case.problem.get("support", ""))
    problem = case.problem
    lines = [f"{name}: {joined_text(problem[name])}" for name in names if name in problem]
    return "\n".join([*lines, f"answer: {component_text(case.solution)}"])


def joined_text(component: Any) -> str:
    """Return a component as one text; the items of a list are joined by commas."""
    if isinstance(component, (list, tuple)):
        return ", ".join(map(component_text, component))
    return component_text(component)


def _checked_form(form: str) -> str:
    if form not in _LABELLED:
        raise InputError(f"A case has no context form {form!r}. Forms are: {', '.join(_LABELLED)}.")
    return form
