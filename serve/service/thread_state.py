"""What is kept of a thread's last run, wherever that was left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import told
from casewright.serve.service.checkpoint_sums import damaged_thread

#: The graph's nodes in their order, the input as LangGraph names it before them.
NODES = ("__start__", "plan", "execute", "generate")
#: Under this LangGraph keeps what a task returned, until its node is over.
_RETURNED = "__return__"
#: And under this what it asks.
_INTERRUPT = "__interrupt__"
#: Metadata of a run's checkpoints: the request that began it, where it had an Idempotency-Key.
REQUEST = "casewright_request"


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What is kept of a thread's last run.

    Attributes:
        done: How many of ``NODES`` have left their results.
        values: The graph's state; what nodes that are still to come left in it is an earlier run's.
        outcomes: The finished steps, JSON-plain, in the order in which they ended.
        questions: What tools wait to be told, each with the ``id`` that a reply names.
        interrupts: By that id, LangGraph's.
        request: The request that began the run, where it had an Idempotency-Key.
    """

    done: int
    values: Mapping[str, Any]
    outcomes: Sequence[Mapping[str, Any]]
    questions: Sequence[Mapping[str, Any]]
    interrupts: Mapping[str, str]
    request: str | None

    @property
    def answered(self) -> bool:
        """Whether the run has its answer."""
        return self.done == len(NODES)

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do, but for somebody's reply."""
        return self.answered or bool(self.questions)

    @property
    def returned(self) -> Mapping[str, Any]:
        """What the graph returned, where the run has ended."""
        return {**self.values, "__interrupt__": self.questions}

    @property
    def plan(self) -> str | None:
        """The run's plan, where it has one."""
        return self.values["plan"] if self.done > NODES.index("plan") else None


async def thread_state(graph: Any, saver: Any, key: str) -> ThreadState | None:
    """Return what a checkpointer has of a thread; ``None`` where it has nothing.

    Raises:
        StoreDamagedError: It is not as it was written.
    """
    config = {"configurable": {"thread_id": key}}
    try:
        found = await graph.aget_state(config)
        kept = await saver.aget_tuple(config)
    except (ValueError, LookupError, TypeError) as error:
        raise damaged_thread(told(error)) from error
    if kept is None:
        return None
    nodes = [task.name for task in found.tasks if task.name in NODES]
    # A node's results are kept before the next checkpoint is, which alone names the next node.
    done = NODES.index(nodes[0]) + (not found.next) if nodes else len(NODES)
    values = found.values
    if done == 0:
        # The input waits to be taken; what stands in the state is an earlier run's.
        values = {**values, **kept.checkpoint["channel_values"].get(NODES[0], {})}
    if "question" not in values:
        # Its beginning was deleted while it ran.
        return None
    writes = kept.pending_writes or ()
    returned = {task: value for task, channel, value in writes if channel == _RETURNED}
    executed = done > NODES.index("execute")
    named = {f"{values.get('run_id')}.{one.id}": one for one in _open(found, writes, returned)}
    return ThreadState(
        done=done,
        values=values,
        outcomes=values["outcomes"] if executed else list(returned.values()),
        questions=[{"id": id_, "question": one.value} for id_, one in named.items()],
        interrupts={id_: one.id for id_, one in named.items()},
        request=(found.metadata or {}).get(REQUEST),
    )


def _open(
    found: Any, writes: Sequence[tuple[str, str, Any]], returned: Mapping[str, Any]
) -> list[Any]:
    """Return the interrupts that wait for a reply, in the order of their steps.

    The node of the steps keeps what they asked as well, but later: of a run that was killed in
    between it has a question that was replied to.
    """
    late = {task.id for task in found.tasks if task.name == "execute"}
    asked = [
        one
        for task, channel, interrupts in writes
        if channel == _INTERRUPT and task not in late and task not in returned
        for one in interrupts
    ]
    order = [one.id for one in found.interrupts]
    return sorted(asked, key=lambda one: order.index(one.id) if one.id in order else len(order))
