"""Kills of a service after each write of a request; a new service continues the run."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import interrupt

from casewright.bench.soak.trials import Bounds, Counts, in_child
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.tools import CallContext, Toolbox, tool_from_function

#: The requests: a thread's first question, its second question, a reply to a tool.
REQUESTS = ("first", "second", "reply")
#: The ways to continue the run: resume it, or repeat the request.
WAYS = ("resume", "repeat")
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
ASKING = ("s1 = look(text=question)", "s2 = ask(text=s1.value)", "s3 = ask(text=s2.value)")
REPLIES = ("red", "blue")
#: The methods that write for a request; the service is killed after each of their calls.
WRITES: tuple[tuple[Any, str], ...] = (
    (AsyncSqliteSaver, "aput"),
    (AsyncSqliteSaver, "aput_writes"),
    (AsyncSqliteStore, "aput"),
)


class QuestionPlanner:
    """A planner whose plan is in the question, after ``plan:``, with lines joined by ``;``."""

    name = "question"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the question's plan."""
        text = request.question.partition("plan:")[2].strip().replace("; ", "\n")
        return PlanResult(parse_plan(text or "s1 = look(text=question)"), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """Return the question's plan."""
        return self.plan(request)


@asynccontextmanager
async def served(service: Callable[..., Any], folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Serve in this process for the block; threads and a log of calls are in the folder."""

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

    tools = [tool_from_function(work, results=("value",)) for work in (look, ask)]
    app = service(Toolbox(tools), QuestionPlanner(), folder / "threads.db")
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


def kills_of_service(bounds: Bounds, folder: Path) -> Counts:
    """Kill a service after each write of a request in turn; a new service continues the run."""
    counts, chance = Counts("killed after each write of a request"), random.Random(bounds.seed)
    request, writes = "", 0
    plan: tuple[str, ...] = ASKING
    for number in bounds.trials(counts):
        if not request:
            request, writes = chance.choice(REQUESTS), 0
            plan = ASKING if request == "reply" else drawn_plan(chance)
        trial_folder = folder / str(number)
        trial_folder.mkdir()
        trial = Trial(bounds.service, trial_folder, request, plan, chance.choice(WAYS), writes)
        name = f"{bounds.seed}.{number} {request} after {writes} writes, {trial.way}, "
        name += "; ".join(plan)
        in_child(trial.prepare)
        ended, error = in_child(trial.be_killed)
        if ended in ("told", "failed", "late"):
            counts.add(f"{ended} {error}", name)
        else:
            outcome, state = in_child(trial.outcome)
            counts.lost += outcome == "done" and state.startswith("lost")
            counts.add(state if outcome == "done" else f"{outcome} {state}", name)
        shutil.rmtree(trial_folder)
        request, writes = ("" if ended == "done" else request), writes + 1
    return counts


def drawn_plan(chance: random.Random) -> tuple[str, ...]:
    """Return the lines of a random plan whose steps refer to the question or to earlier steps."""
    steps = []
    for number in range(1, chance.randrange(2, 5)):
        text = chance.choice(["question", *(f"s{k}.value" for k in range(1, number))])
        steps.append(f"s{number} = look(text={text})")
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class Trial:
    """A request whose service is killed after ``writes`` writes; its methods run in children."""

    service: Any
    folder: Path
    request: str
    plan: tuple[str, ...]
    way: str
    writes: int

    @property
    def question(self) -> dict[str, str]:
        """The body of the question."""
        return {"question": f"please plan: {'; '.join(self.plan)}", "thread_id": "t"}

    def prepare(self) -> None:
        """Bring the thread into the state that the request needs."""

        async def prepare() -> None:
            async with served(self.service, self.folder) as client:
                if self.request == "second":
                    await client.post("/ask", json={"question": "before", "thread_id": "t"})
                else:
                    reply = await client.post("/ask", json=self.question)
                    (self.folder / "first").write_text(reply.json()["questions"][0]["id"])

        if self.request != "first":
            asyncio.run(prepare())

    def be_killed(self) -> None:
        """Serve the request, and kill this process after ``writes`` writes."""
        left = self.writes

        def kill_at_end() -> None:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def counted(kind: Any, name: str) -> None:
            write = getattr(kind, name)

            async def counting(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                kill_at_end()
                result = await write(*arguments, **options)
                left -= 1
                kill_at_end()
                return result

            setattr(kind, name, counting)

        async def serve() -> None:
            async with served(self.service, self.folder) as client:
                for kind, name in WRITES:
                    counted(kind, name)
                await self._send(client)

        asyncio.run(serve())

    def outcome(self) -> str:
        """Continue the run; return ``sound``, or a text on the fault."""
        return asyncio.run(self._outcome())

    async def _outcome(self) -> str:
        before = self._calls()
        async with served(self.service, self.folder) as client:
            thread = await client.get("/threads/t")
            if thread.status_code != 200:
                unwritten = not self.writes and self.request == "first"
                return "sound" if unwritten else f"lost: {thread.text}"
            state = thread.json()
            if not self.writes and self.request == "second" and state["question"] == "before":
                return "sound"
            if self.way == "repeat":
                first, second = await self._send(client), await self._send(client)
                if (second.status_code, second.text) != (first.status_code, first.text):
                    return f"the repeated request returned {second.text}, not {first.text}"
            elif state["status"] == "interrupted":
                await client.post("/threads/t/resume", json={})
            last = await _replied(client)
        calls = self._calls()[len(before) :]
        finished = {step["id"] for step in state["steps"]}
        if finished & set(calls) or len(set(calls)) < len(calls):
            return f"finished steps {finished}, later calls {calls}"
        steps = (last["answer"] or {"steps": []})["steps"]
        values = [step["rows"][0]["value"] for step in steps]
        right = (last["question"], values) == (self.question["question"], self.expected_values())
        return "sound" if right else f"lost: {last}"

    async def _send(self, client: httpx.AsyncClient) -> httpx.Response:
        if self.request != "reply":
            return await client.post("/ask", json=self.question, headers=KEY)
        body = {"replies": {(self.folder / "first").read_text(): REPLIES[0]}}
        return await client.post("/threads/t/resume", json=body, headers=KEY)

    def expected_values(self) -> list[str]:
        """Return the right values of the plan's steps; each tool's question gets the next reply."""
        values, replies = {"question": self.question["question"]}, iter(REPLIES)
        for line in self.plan:
            step, _, call = line.partition(" = ")
            text = values[call.partition("text=")[2].rstrip(")").removesuffix(".value")]
            asks = call.startswith("ask")
            values[step] = f"told: {next(replies)}" if asks else f"seen: {text}"
        return list(values.values())[1:]

    def _calls(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().split() if log.exists() else []


async def _replied(client: httpx.AsyncClient) -> dict[str, Any]:
    """Reply to every open question, and return the thread's state at the end."""
    for _ in range(len(REPLIES) + 1):
        state: dict[str, Any] = (await client.get("/threads/t")).json()
        if state["status"] != "waiting":
            break
        (question,) = state["questions"]
        reply = REPLIES[question["question"].startswith("told: ")]
        body = {"replies": {question["id"]: reply}}
        await client.post("/threads/t/resume", json=body)
    return state
