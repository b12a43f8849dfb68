"""One question, answered from Python as ``casewright ask`` answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casewright.domains import Domain
    from casewright.graph import Answer
    from casewright.graph.mend import Mend
    from casewright.planner import Turn


def ask(
    question: str,
    domain: str | Domain = "shopping",
    *,
    context: Mapping[str, Any] | None = None,
    scope: Mapping[str, str] | None = None,
    history: Sequence[Turn] = (),
    planner: str | None = None,
    generator: str = "extractive",
    full: bool = False,
    mend: Mend = "off",
    deadline: float | None = None,
) -> Answer:
    """Return the answer to one question.

    Stores are opened and closed again: for many questions, compile ``build_graph`` once.

    Args:
        question: The user's question.
        domain: A domain of ``own_domain``, a packaged domain's name, or ``FILE.py:NAME``.
        context: What is known beside the question, for example the open page.
        scope: Who asks; each scope field's first value by default.
        history: Earlier turns of the conversation, the earliest first.
        planner: A planner by its name for ``--planner``; the domain's default otherwise.
        generator: A generator by its name for ``--generator``.
        full: Quote whole results, where no language model words the answer.
        mend: Replanning after steps that failed or found nothing; see ``build_graph``.
        deadline: Seconds after which the answer is written from the evidence found so far.

    Raises:
        InputError: The question, the context, the scope or a name cannot be used.
    """
    from casewright.graph import Answer
    from casewright.planner.request import check_context, check_history, check_question
    from casewright.serve.session.dialogue import Dialogue
    from casewright.serve.session.scopes import scope_of
    from casewright.serve.session.session import open_session

    check_question(question)
    check_context(context or {})
    check_history(list(history))
    session = open_session(domain, planner)
    try:
        whole_scope = scope_of(session.domain.scopes, scope or {}, listed=True)
        graph = session.graph(generator, full=full, mend=mend)
        limits = None if deadline is None else {"deadline": deadline}
        dialogue = Dialogue(graph, whole_scope, history, limits=limits)
        return Answer.from_state(dialogue.ask(question, context or {}))
    finally:
        session.close()
