"""Casewright as a tool of an agent, here LangChain's ``create_agent``.

The agent's model is a script, so that the example runs offline. Any chat model can be used instead,
such as ``init_chat_model("openai:gpt-4o-mini")``. To install LangChain in a clone, run
pip install -c constraints.txt -e '.[chat]'

    python examples/as_a_tool.py
"""

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from casewright.graph import Answer, RunContext, as_tool, build_graph
from casewright.planner import AnnotatedQuery, CasePlanner, plan_store
from casewright.stores import default_encoder
from casewright.tools import CallContext, Toolbox, tool_from_function


def find_machine(query: str, call: CallContext) -> list[dict]:
    """Finds a machine of this plant."""
    return [{"machine_id": "M7", "name": f"{query} 7, hall {call.scope['hall']}"}]


def read_sensor(machine_id: str) -> list[dict]:
    """The latest temperature of one machine."""
    return [{"evidence": f"{machine_id}: 61 °C", "source": f"sensor:{machine_id}"}]


plan = 's1 = find_machine(query="mill")\ns2 = read_sensor(machine_id=s1.machine_id)'
case = AnnotatedQuery.read({"id": "1", "query": "how warm is the mill", "plan": plan})
tools = [
    tool_from_function(find_machine, results=("machine_id", "name")),
    tool_from_function(read_sensor),
]
graph = build_graph(Toolbox(tools), CasePlanner(plan_store([case], default_encoder())))
plant_tool = as_tool(graph, "ask_the_plant", "Knows the plant's machines and what they measure.")


class Script(GenericFakeChatModel):
    """A chat model that returns prepared messages, one for each call."""

    def bind_tools(self, tools, **options):
        """Return this model, since the messages do not depend on tools."""
        return self


tool_call = {"name": "ask_the_plant", "args": {"question": "how warm is the lathe"}, "id": "1"}
model = Script(messages=iter([AIMessage("", tool_calls=[tool_call]), "The lathe is at 61 °C."]))
agent = create_agent(model, [plant_tool], context_schema=RunContext)

if __name__ == "__main__":
    request = {"messages": [("user", "Is the lathe too warm?")]}
    # The user's scope and the time limit of a step apply to this request only.
    context = RunContext(scope={"hall": "B"}, limits={"step_seconds": 5})
    for message in agent.invoke(request, context=context)["messages"]:
        print(f"{message.type}: {message.text or message.tool_calls[0]['args']}")
        if message.type == "tool":
            print("steps:", [step["status"] for step in Answer.from_json(message.artifact).steps])
