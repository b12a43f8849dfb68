"""Reads the stored state of a thread's last run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewright.errors import one_line
from casewright.serve.service.checkpoint_sums import damaged_thread_error

#: LangGraph's input node, then the graph's nodes in their order; revise may lead back to plan.
NODES = ("__start__", "plan", "approve", "execute", "revise", "retain", "generate")
#: LangGraph's channel that holds a step task's return value until the execute node ends.
_RETURN_CHANNEL = "__return__"
#: LangGraph's channel that holds the interrupts of a task.
_INTERRUPT_CHANNEL = "__interrupt__"
#: Metadata field of a run's checkpoints: the id of the request that began the run, if the request
#: had an Idempotency-Key; see ``Attempt.request_id``.
REQUEST_ID = "casewright_request"


@dataclass(frozen=True, slots=True)
class ThreadState:
    """The stored state of a thread's last run.

    Attributes:
        ended_count: Number of the ``NODES`` that have ended, from the first.
        values: The graph's state. Until a node ends, the values that it writes are still those of
            an earlier run.
        outcomes: Outcomes of finished steps in JSON types; the first step that ended comes first.
        questions: Open questions of tools or an approval; each has an ``id``, which a reply names.
        interrupt_ids: Maps the ``id`` of a question to LangGraph's id of the interrupt.
        request_id: The id of the request that began the run, if the request had an Idempotency-Key.
    """

    ended_count: int
    values: Mapping[str, Any]
    outcomes: Sequence[Mapping[str, Any]]
    questions: Sequence[Mapping[str, Any]]
    interrupt_ids: Mapping[str, str]
    request_id: str | None

    @property
    def is_answered(self) -> bool:
        """True if the run has an answer."""
        return self.ended_count == len(NODES)

    @property
    def is_idle(self) -> bool:
        """True if the run has an answer or waits for replies."""
        return self.is_answered or bool(self.questions)

    @property
    def final_state(self) -> Mapping[str, Any]:
        """The state that the graph returns at the end of the run."""
        return {**self.values, "__interrupt__": self.questions}

    @property
    def plan(self) -> str | None:
        """The run's plan, if it has one."""
        return self.values["plan"] if self.ended_count > NODES.index("plan") else None


async def thread_state(graph: Any, saver: Any, key: str) -> ThreadState | None:
    """Return the state of a thread; ``None`` if the checkpointer has no such thread.

    Raise ``StoreDamagedError`` if the stored data is damaged.
    """
    config = {"configurable": {"thread_id": key}}
    try:
        snapshot = await graph.aget_state(config)
        checkpoint = await saver.aget_tuple(config)
    except (ValueError, LookupError, TypeError) as error:
        raise damaged_thread_error(one_line(error)) from error
    if checkpoint is None:
        return None
    task_nodes = [task.name for task in snapshot.tasks if task.name in NODES]
    ended_count = NODES.index(task_nodes[0]) if task_nodes else len(NODES)
    if task_nodes and not snapshot.next:
        # The first task's node has ended, but the next checkpoint is not yet written.
        ended_count += 1
    values = snapshot.values
    if ended_count == 0:
        # The state has the values of an earlier run, and not yet the new input.
        values = {**values, **checkpoint.checkpoint["channel_values"].get(NODES[0], {})}
    if "question" not in values:
        # The first checkpoint, with the question, was deleted during the run.
        return None
    writes = checkpoint.pending_writes or ()
    returned = {task: value for task, channel, value in writes if channel == _RETURN_CHANNEL}
    earlier_outcomes: Sequence[Mapping[str, Any]] = ()
    # While replanned steps run, the state has the earlier steps' outcomes.
    execute_index = NODES.index("execute")
    is_replanned = ended_count == execute_index and "mended" in values["planning"]
    if ended_count > execute_index or is_replanned:
        earlier_outcomes = values["outcomes"]
    interrupts = {
        f"{values.get('run_id')}.{interrupt.id}": interrupt
        for interrupt in _open_interrupts(snapshot, writes, returned)
    }
    return ThreadState(
        ended_count=ended_count,
        values=values,
        outcomes=[*earlier_outcomes, *returned.values()],
        questions=[{"id": id_, "question": item.value} for id_, item in interrupts.items()],
        interrupt_ids={id_: item.id for id_, item in interrupts.items()},
        request_id=(snapshot.metadata or {}).get(REQUEST_ID),
    )


def _open_interrupts(
    snapshot: Any, writes: Sequence[tuple[str, str, Any]], returned: Mapping[str, Any]
) -> list[Any]:
    """Return the interrupts without a reply, in the order of their steps.

    Only interrupts of the steps' own tasks are read. The execute node also stores interrupts
    when it stops for replies. If the process was killed after a reply, but before the node stopped
    again, the execute node's interrupts may include one that has a reply.
    """
    execute_tasks = {task.id for task in snapshot.tasks if task.name == "execute"}
    unanswered = [
        interrupt
        for task, channel, interrupts in writes
        if channel == _INTERRUPT_CHANNEL and task not in execute_tasks and task not in returned
        for interrupt in interrupts
    ]
    ids = [interrupt.id for interrupt in snapshot.interrupts]
    return sorted(unanswered, key=lambda item: ids.index(item.id) if item.id in ids else len(ids))
