"""The feedback loop, a compiled graph of its own: search → judge → search again, until it settles.

Source: the RepoGPT post on semi-supervised retrieval (2023): a judge marks what is relevant, and
the question with the relevant searches again, until their number stops growing. Unlike there, only
what was not seen is judged, and every loop ends by a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from casewright.errors import InputError
from casewright.graph.body_node import BodyNode
from casewright.graph.feedback.limits import FeedbackLimits
from casewright.graph.feedback.nodes import Nodes
from casewright.graph.feedback.state import FeedbackInput, FeedbackOutput, FeedbackState
from casewright.stores import Case, CaseStore
from casewright.stores.feedback import Judge, SentenceStrategy, Strategy, case_text

FeedbackGraph = CompiledStateGraph[FeedbackState, None, FeedbackInput, FeedbackOutput]


def build_feedback(
    store: CaseStore,
    judge: Judge,
    strategy: Strategy | None = None,
    *,
    limits: FeedbackLimits | None = None,
    weights: Mapping[str, float] | None = None,
    text: Callable[[Case], str] = case_text,
    checkpointer: Any = None,
) -> FeedbackGraph:
    """Compile a feedback loop over a store.

    It is invoked with ``FeedbackInput`` and returns ``FeedbackOutput``, read by
    ``FeedbackResult.from_state``; it is a graph of its own and a node of others. With
    ``stream_mode="custom"`` it yields an event ``feedback_round`` after every round, and
    ``feedback_ended`` with the reason.

    A round is one search and one call of the judge, who is shown what is relevant already and asked
    about the unseen. It goes on while the relevant set grows, within the limits. A judge that
    raises, hangs or answers nonsense ends it; what was found until then is returned.

    Args:
        store: What is searched.
        judge: Says what is relevant.
        strategy: How later rounds search; by the sentences of what is relevant by default.
        limits: The bounds.
        weights: Facet name to weight; by default the schema's own.
        text: What a judge reads of a case.
        checkpointer: None is compiled in unless given.

    Raises:
        InputError: Store, judge, strategy, limits or weights are none.

    Raises (when invoked):
        InputError: Question or condition are unusable, or ``text`` fails.
        StoreError: The first search failed.
    """
    if not isinstance(store, CaseStore) or not isinstance(limits, FeedbackLimits | None):
        raise InputError(
            f"A feedback loop was given the store {store!r:.100} and the limits {limits!r:.100}. "
            "Give a CaseStore, and FeedbackLimits(…) or None."
        )
    nodes = Nodes(
        store, judge, strategy or SentenceStrategy(), limits or FeedbackLimits(), weights, text
    )
    graph = StateGraph(FeedbackState, input_schema=FeedbackInput, output_schema=FeedbackOutput)
    graph.add_node("begin", nodes.begin)
    graph.add_node("search", BodyNode(nodes.search))
    graph.add_node("judge", BodyNode(nodes.judge))
    graph.add_node("finish", BodyNode(nodes.finish))
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "search")
    graph.add_conditional_edges("search", _after("judge"), ["judge", "finish"])
    graph.add_conditional_edges("judge", _after("search"), ["search", "finish"])
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer, name="feedback")


def _after(onward: str) -> Callable[[FeedbackState], str]:
    """Return a route: onward, unless there is a reason to stop."""

    def route(state: FeedbackState) -> str:
        return "finish" if state["reason"] else onward

    return route
