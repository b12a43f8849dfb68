"""Casewright as a node of a LangGraph graph that has its own state keys, checkpointer and context.

The graph is a help desk, which answers a message and signs the reply. A tool asks the customer a
question: the graph pauses, and later resumes inside the node. Run: python examples/in_a_graph.py
"""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from casewright.graph import RunContext, as_node, build_graph
from casewright.planner import AnnotatedQuery, CasePlanner, plan_store
from casewright.stores import default_encoder
from casewright.tools import CallContext, Toolbox, tool_from_function


def find_order(query: str, call: CallContext) -> list[dict]:
    """Finds an order of the customer."""
    print(f"(looking up the orders of {call.scope['customer']})")
    return [{"order_id": "O7"}]


def choose_day(order_id: str) -> str:
    """Asks the customer when an order shall come, and books it."""
    return f"{order_id} comes on {interrupt('Which day suits you?')}"


plan = 's1 = find_order(query="mill")\ns2 = choose_day(order_id=s1.order_id)'
case = AnnotatedQuery.read({"id": "1", "query": "deliver my mill another day", "plan": plan})
tools = [tool_from_function(find_order, results=("order_id",)), tool_from_function(choose_day)]
graph = build_graph(Toolbox(tools), CasePlanner(plan_store([case], default_encoder())))


class Desk(TypedDict, total=False):
    """The state of the help desk."""

    message: str
    reply: str


look_up = as_node(
    graph,
    question="message",
    answer="reply",
    run_context=lambda context: RunContext(scope={"customer": context["user"]}),
)
sign_step = ("sign", lambda state: {"reply": state["reply"] + "\nYour desk"})
desk = StateGraph(Desk, context_schema=dict).add_sequence([("look_up", look_up), sign_step])
app = desk.add_edge(START, "look_up").compile(checkpointer=InMemorySaver())

if __name__ == "__main__":
    options = {"config": {"configurable": {"thread_id": "one"}}, "context": {"user": "C1"}}
    state = app.invoke({"message": "deliver my lathe another day"}, **options)
    print("Asked:", state["__interrupt__"][0].value)
    state = app.invoke(Command(resume="Friday"), **options)
    print(state["reply"])
