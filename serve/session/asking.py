"""The function ``ask``, which answers a question as the command ``casewright ask`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
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
    """Return the answer to a question.

    Every call opens and closes the stores; for many questions, use ``build_graph``.

    Args:
        question: The user's question.
        domain: A ``Domain`` (see ``own_domain``), the name of a domain, or ``FILE.py:NAME``.
        context: Known facts, for example the open page.
        scope: Values of the domain's scope fields, which identify the user; by default each
            field's first value.
        history: Earlier turns of the conversation, the earliest first.
        planner: Name of a planner, as for ``--planner``; by default the domain's planner.
        generator: Name of a generator, as for ``--generator``.
        full: Quote whole results, if no language model writes the answer.
        mend: After which steps to replan: none, failed, or also empty ones; see ``build_graph``.
        deadline: Seconds after which the answer is written from the evidence found so far.

    Raises:
        InputError: The question, the context, the scope or a name is invalid.
    """
    from casewright.graph import Answer
    from casewright.planner.request import check_context, check_history, check_question
    from casewright.serve.session.dialogue import Dialogue
    from casewright.serve.session.scopes import scope_of
    from casewright.serve.session.session import open_session

    check_question(question)
    check_context(context or {})
    check_history(list(history))
    with closing(open_session(domain, planner)) as session:
        user_scope = scope_of(session.domain.scopes, scope or {}, list_values=True)
        limits = None if deadline is None else {"deadline": deadline}
        graph = session.graph(generator, full=full, mend=mend)
        dialogue = Dialogue(graph, user_scope, history, limits=limits)
        return Answer.from_state(dialogue.ask(question, context or {}))
