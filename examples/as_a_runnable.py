"""Casewright as a LangChain ``Runnable``, which is piped, batched and streamed for two tenants.

Both tenants use the same graph and store, but neither gets the other's cases.

    python examples/as_a_runnable.py
"""

import asyncio

from casewright.errors import InputError
from casewright.graph import RunContext, as_runnable, build_graph
from casewright.planner import AnnotatedQuery, CasePlanner, plan_store
from casewright.stores import Case, CaseSchema, CaseStore, default_encoder, text_facet
from casewright.tools import Toolbox, tool_from_store

encoder = default_encoder()
schema = CaseSchema("manuals", (text_facet("title", encoder),), tenanted=True)
# A store must be opened for some tenant; the tool opens the store for each request's tenant.
store = CaseStore(schema, ":memory:", tenant="nobody")
for tenant, text in (("acme", "Oil the spindle weekly."), ("bolt", "Call the maker.")):
    with store.for_tenant(tenant) as tenant_store:
        tenant_store.add([Case({"title": "Mill, care of the spindle"}, text)])

search = tool_from_store(
    store, name="search_manuals", description="Searches the manuals.", per_tenant=True
)
case = AnnotatedQuery.read(
    {"id": "1", "query": "how do I oil the mill", "plan": "s1 = search_manuals(query=question)"}
)
graph = build_graph(Toolbox([search]), CasePlanner(plan_store([case], encoder)))
acme = as_runnable(graph, run_context=RunContext(tenant="acme"))
bolt = as_runnable(graph, output="text", run_context=RunContext(tenant="bolt"))


async def print_events() -> None:
    """Print the names of a run's events while the run answers a question."""
    async for event in bolt.astream_events("How do I care for the spindle?"):
        if event["event"] == "on_custom_event":
            print("event:", event["name"])


if __name__ == "__main__":
    chain = (lambda machine: f"How do I oil the {machine}?") | acme | (lambda answer: answer.text)
    print("piped:", chain.invoke("mill"))
    for piece in bolt.stream("How do I care for the spindle?"):
        print("piece:", piece.strip())
    # The empty question has an error as its result.
    for result in acme.batch(["How do I oil the mill?", ""], return_exceptions=True):
        print("batched:", result if isinstance(result, InputError) else result.citations)
    asyncio.run(print_events())
    store.close()
