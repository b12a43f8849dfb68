"""Trials that kill a service during a request, and continue the request's run in a new service."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import interrupt

from casewright.graph import ExtractiveGenerator
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.tools import CallContext, Toolbox, tool_from_function
from casewright_soak.trials import Bounds, Counts, in_child

#: The kinds of requests: a thread's first question, its second question, or a reply to a tool.
REQUEST_KINDS = ("first", "second", "reply")
#: How a killed run is continued: resume the thread, or repeat the request.
CONTINUATIONS = ("resume", "repeat")
#: A header by which the service recognises a repeated request.
KEY_HEADER = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
#: The lines of a plan whose last two steps ask the user.
ASKING_PLAN = ("s1 = look(text=question)", "s2 = ask(text=s1.value)", "s3 = ask(text=s2.value)")
REPLIES = ("red", "blue")  # the user's replies to the two steps
#: The methods that store a request's data; each trial kills the service after one of their calls.
WRITES: tuple[tuple[Any, str], ...] = (
    (AsyncSqliteSaver, "aput"),
    (AsyncSqliteSaver, "aput_writes"),
    (AsyncSqliteStore, "aput"),
)


class QuestionPlanner:
    """A planner that returns the part of the question after ``plan:``, where ``;`` ends a line."""

    name = "question"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the question's plan."""
        text = request.question.partition("plan:")[2].strip().replace("; ", "\n")
        return PlanResult(parse_plan(text or "s1 = look(text=question)"), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the question's plan."""
        return self.plan(request)


@asynccontextmanager
async def run_service(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Run a service in this process; the folder has its conversations and a log of tool calls."""

    def log(context: CallContext) -> None:
        with (folder / "log").open("a") as file:
            file.write(f"{context.step}\n")

    def look(text: str, context: CallContext) -> list[dict[str, str]]:
        """Looks a text up."""
        log(context)
        return [{"value": f"seen: {text}"}]

    def ask(text: str, context: CallContext) -> list[dict[str, str]]:
        """Asks a user."""
        reply = interrupt(text)
        log(context)
        return [{"value": f"told: {reply}"}]

    tools = [tool_from_function(function, results=("value",)) for function in (look, ask)]
    parts = Parts("soak", Toolbox(tools), QuestionPlanner(), ExtractiveGenerator())
    app = create_app(parts, ServiceOptions(threads_file=folder / "threads.db", langserve=False))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


def kills_of_service(bounds: Bounds, folder: Path) -> Counts:
    """Kill a service after each write of a request in turn, and check how the run continues."""
    counts, rng = Counts("killed after each write of a request"), random.Random(bounds.seed)
    kind, write_count = "", 0  # before each trial, an empty kind is replaced by a drawn one
    plan: tuple[str, ...] = ASKING_PLAN
    for number in bounds.trials(counts):
        if not kind:
            kind, write_count = rng.choice(REQUEST_KINDS), 0
            plan = ASKING_PLAN if kind == "reply" else random_plan(rng)
        trial_folder = folder / str(number)
        trial_folder.mkdir()
        trial = ServiceTrial(trial_folder, kind, plan, rng.choice(CONTINUATIONS), write_count)
        name = f"{bounds.seed}.{number} {kind} after {write_count} writes, {trial.continuation}, "
        name += "; ".join(plan)
        in_child(trial.prepare)
        ending, error = in_child(trial.serve_until_killed)
        if ending in ("told", "failed", "late"):
            counts.add(f"{ending} {error}", name)
        else:
            new_ending, outcome = in_child(trial.continue_run)
            counts.lost += new_ending == "done" and outcome.startswith("lost")
            counts.add(outcome if new_ending == "done" else f"{new_ending} {outcome}", name)
        shutil.rmtree(trial_folder)
        # If the request ended before the kill, all of its writes were tried. Draw another kind.
        write_count += 1
        if ending == "done":
            kind = ""
    return counts


def random_plan(rng: random.Random) -> tuple[str, ...]:
    """Return the lines of a random plan whose steps refer to the question or to earlier steps."""
    texts = ["question", "s1.value", "s2.value"]
    numbers = range(1, rng.randrange(2, 5))
    return tuple(f"s{n} = look(text={rng.choice(texts[:n])})" for n in numbers)


class ServiceTrial(NamedTuple):
    """A request during which the service is killed; child processes run the methods."""

    folder: Path
    kind: str  # one of ``REQUEST_KINDS``
    plan: tuple[str, ...]
    continuation: str  # one of ``CONTINUATIONS``
    write_count: int  # the number of writes before the kill

    @property
    def question_body(self) -> dict[str, str]:
        """The JSON body of the request that sends the question."""
        return {"question": f"please plan: {'; '.join(self.plan)}", "thread_id": "t"}

    async def prepare(self) -> None:
        """Send the requests that must precede the trial's request in its thread."""
        if self.kind == "first":
            return
        async with run_service(self.folder) as client:
            if self.kind == "second":
                await client.post("/ask", json={"question": "before", "thread_id": "t"})
            else:
                response = await client.post("/ask", json=self.question_body)
                (self.folder / "question_id").write_text(response.json()["questions"][0]["id"])

    async def serve_until_killed(self) -> None:
        """Serve the request, and kill this process after ``write_count`` writes."""
        remaining = self.write_count

        def kill_if_due() -> None:
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def count_writes(class_: Any, method: str) -> None:
            write = getattr(class_, method)

            async def counted_write(*arguments: Any, **options: Any) -> Any:
                nonlocal remaining
                kill_if_due()
                result = await write(*arguments, **options)
                remaining -= 1
                kill_if_due()
                return result

            setattr(class_, method, counted_write)

        async with run_service(self.folder) as client:
            for class_, method in WRITES:
                count_writes(class_, method)
            await self._send(client)

    async def continue_run(self) -> str:
        """Continue the run; return ``sound``, ``lost: …`` or the description of another fault."""
        steps_before = self._logged_steps()
        async with run_service(self.folder) as client:
            thread = await client.get("/threads/t")
            if thread.status_code != 200:
                nothing_was_written = not self.write_count and self.kind == "first"
                return "sound" if nothing_was_written else f"lost: {thread.text}"
            state = thread.json()
            if not self.write_count and self.kind == "second" and state["question"] == "before":
                return "sound"
            if self.continuation == "repeat":
                response, repeated = await self._send(client), await self._send(client)
                if (repeated.status_code, repeated.text) != (response.status_code, response.text):
                    return f"the repeated request returned {repeated.text}, not {response.text}"
            elif state["status"] == "interrupted":
                await client.post("/threads/t/resume", json={})
            end_state = await _reply_to_all(client)
        later_steps = self._logged_steps()[len(steps_before) :]
        finished_steps = {step["id"] for step in state["steps"]}
        if finished_steps & set(later_steps) or len(set(later_steps)) < len(later_steps):
            return f"finished steps {finished_steps}, later calls {later_steps}"
        steps = (end_state["answer"] or {"steps": []})["steps"]
        values = [step["rows"][0]["value"] for step in steps]
        expected = (self.question_body["question"], self.expected_values())
        return "sound" if (end_state["question"], values) == expected else f"lost: {end_state}"

    async def _send(self, client: httpx.AsyncClient) -> httpx.Response:
        if self.kind != "reply":
            return await client.post("/ask", json=self.question_body, headers=KEY_HEADER)
        body = {"replies": {(self.folder / "question_id").read_text(): REPLIES[0]}}
        return await client.post("/threads/t/resume", json=body, headers=KEY_HEADER)

    def expected_values(self) -> list[str]:
        """Return the values that the steps of the plan must have."""
        value_by_name, replies = {"question": self.question_body["question"]}, iter(REPLIES)
        for line in self.plan:
            step, _, call = line.partition(" = ")
            text = value_by_name[call.partition("text=")[2].rstrip(")").removesuffix(".value")]
            is_ask = call.startswith("ask")
            value_by_name[step] = f"told: {next(replies)}" if is_ask else f"seen: {text}"
        return list(value_by_name.values())[1:]  # without the question

    def _logged_steps(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().split() if log.exists() else []


async def _reply_to_all(client: httpx.AsyncClient) -> dict[str, Any]:
    """Reply to every open question, and return the thread's state at the end."""
    for _ in range(len(REPLIES) + 1):
        state: dict[str, Any] = (await client.get("/threads/t")).json()
        if state["status"] != "waiting":
            break
        (question,) = state["questions"]
        # The second question has the first reply as its text, after "told: ".
        reply = REPLIES[1 if question["question"].startswith("told: ") else 0]
        body = {"replies": {question["id"]: reply}}
        await client.post("/threads/t/resume", json=body)
    return state
