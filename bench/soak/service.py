"""A service that is killed after each write of a request: the next one goes on with its run."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import interrupt

from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Bounds, Counts
from casewright.graph import ExtractiveGenerator
from casewright.planner import PlanRequest, PlanResult, parse_plan
from casewright.serve.service.app import create_app
from casewright.serve.service.options import Parts, ServiceOptions
from casewright.tools import CallContext, Toolbox, tool_from_function

#: What is killed: a thread's first question, its second one, a reply to a tool.
REQUESTS = ("first", "second", "reply")
#: How the run is gone on with: by its resumption, or by the same request once more.
WAYS = ("resume", "repeat")
KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}
ASKING = ("s1 = look(text=question)", "s2 = ask(text=s1.value)", "s3 = ask(text=s2.value)")
REPLIES = ("red", "blue")


class QuestionPlanner:
    """Takes the plan from the question itself: what stands after ``plan:``, ``;`` between lines."""

    name = "question"

    def plan(self, request: PlanRequest) -> PlanResult:
        """Return the question's plan."""
        text = request.question.partition("plan:")[2].strip().replace("; ", "\n")
        return PlanResult(parse_plan(text or "s1 = look(text=question)"), self.name)

    async def aplan(self, request: PlanRequest) -> PlanResult:
        """The same."""
        return self.plan(request)


def kills_of_service(bounds: Bounds, folder: Path) -> Counts:
    """Kill a service after each write of a request in turn, and go on in a new one."""
    counts, chance = Counts("killed after each write of a request"), random.Random(bounds.seed)
    request, writes = "", 0
    for number in bounds.trials(counts):
        if not request:
            request, writes = chance.choice(REQUESTS), 0
            plan = ASKING if request == "reply" else drawn_plan(chance)
        place, way = folder / str(number), chance.choice(WAYS)
        place.mkdir()
        trial = f"{bounds.seed}.{number} {request} after {writes} writes, {way}, {'; '.join(plan)}"
        in_child(prepared, place, request, plan)
        ended, error = in_child(killed_after, writes, place, request, plan)
        if ended in ("told", "failed", "late"):
            counts.add(f"{ended} {error}", trial)
        else:
            outcome, state = in_child(gone_on, place, request, plan, way, writes)
            counts.lost += outcome == "done" and state.startswith("lost")
            counts.add(state if outcome == "done" else f"{outcome} {state}", trial)
        shutil.rmtree(place)
        request, writes = ("" if ended == "done" else request), writes + 1
    return counts


def drawn_plan(chance: random.Random) -> tuple[str, ...]:
    """Return the lines of a plan whose steps wait for earlier ones, or for none."""
    steps = []
    for number in range(1, chance.randrange(2, 5)):
        given = chance.choice(["question", *(f"s{k}.value" for k in range(1, number))])
        steps.append(f"s{number} = look(text={given})")
    return tuple(steps)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Serve in this process, with threads in a file, while the context lasts."""
    log = folder / "log"

    def said(context: CallContext) -> None:
        with log.open("a") as file:
            file.write(f"{context.step}\n")

    def look(text: str, context: CallContext) -> list[dict[str, str]]:
        """Looks a text up."""
        said(context)
        return [{"value": f"seen: {text}"}]

    def ask(text: str, context: CallContext) -> list[dict[str, str]]:
        """Asks a user."""
        reply = interrupt(text)
        said(context)
        return [{"value": f"told: {reply}"}]

    tools = [tool_from_function(work, results=("value",)) for work in (look, ask)]
    parts = Parts("soak", Toolbox(tools), QuestionPlanner(), ExtractiveGenerator())
    app = create_app(parts, ServiceOptions(threads_file=folder / "threads.db", langserve=False))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


def prepared(folder: Path, request: str, plan: Sequence[str]) -> None:
    """Bring a thread to where the request finds it."""

    async def prepare() -> None:
        async with served(folder) as client:
            if request == "second":
                await client.post("/ask", json={"question": "before", "thread_id": "t"})
            if request == "reply":
                asked = await client.post("/ask", json=_question(plan))
                (folder / "first").write_text(asked.json()["questions"][0]["id"])

    if request != "first":
        asyncio.run(prepare())


def killed_after(writes: int, folder: Path, request: str, plan: Sequence[str]) -> None:
    """Serve a request, and kill the process once so many of its writes are kept."""
    left = writes

    def counted(kind: Any, name: str) -> None:
        write = getattr(kind, name)

        async def counting(*given: Any, **more: Any) -> Any:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            returned = await write(*given, **more)
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return returned

        setattr(kind, name, counting)

    async def serve() -> None:
        async with served(folder) as client:
            for kind, name in (
                (AsyncSqliteSaver, "aput"),
                (AsyncSqliteSaver, "aput_writes"),
                (AsyncSqliteStore, "aput"),
            ):
                counted(kind, name)
            await _requested(client, folder, request, plan)

    asyncio.run(serve())


def gone_on(folder: Path, request: str, plan: Sequence[str], way: str, writes: int) -> str:
    """Go on with a run whose service was killed; returns ``sound``, or what is wrong."""
    return asyncio.run(_gone_on(folder, request, plan, way, writes))


async def _gone_on(folder: Path, request: str, plan: Sequence[str], way: str, writes: int) -> str:
    before = _calls(folder)
    async with served(folder) as client:
        kept = await client.get("/threads/t")
        if kept.status_code != 200:
            return "sound" if not writes and request == "first" else f"lost: {kept.text}"
        state = kept.json()
        if not writes and request == "second" and state["question"] == "before":
            return "sound"
        if way == "repeat":
            ended = await _requested(client, folder, request, plan)
            again = await _requested(client, folder, request, plan)
            if (again.status_code, again.text) != (ended.status_code, ended.text):
                return f"repeated, it returned {again.text}, and not {ended.text}"
        elif state["status"] == "interrupted":
            await client.post("/threads/t/resume", json={})
        last = await _replied(client)
    calls = _calls(folder)[len(before) :]
    finished = {step["id"] for step in state["steps"]}
    if finished & set(calls) or len(set(calls)) < len(calls):
        return f"finished were {finished}, called were {calls}"
    values = [step["rows"][0]["value"] for step in (last["answer"] or {"steps": []})["steps"]]
    if (last["question"], values) != (_question(plan)["question"], expected_values(plan)):
        return f"lost: {last}"
    return "sound"


async def _replied(client: httpx.AsyncClient) -> dict[str, Any]:
    """Reply to what is open, and return the thread's state at the end."""
    for _ in range(len(REPLIES) + 1):
        state: dict[str, Any] = (await client.get("/threads/t")).json()
        if state["status"] != "waiting":
            break
        (asked,) = state["questions"]
        reply = REPLIES[asked["question"].startswith("told: ")]
        body = {"reply": reply, "reply_to": asked["id"]}
        await client.post("/threads/t/resume", json=body)
    return state


async def _requested(
    client: httpx.AsyncClient, folder: Path, request: str, plan: Sequence[str]
) -> httpx.Response:
    if request != "reply":
        return await client.post("/ask", json=_question(plan), headers=KEY)
    body = {"reply": REPLIES[0], "reply_to": (folder / "first").read_text()}
    return await client.post("/threads/t/resume", json=body, headers=KEY)


def expected_values(plan: Sequence[str]) -> list[str]:
    """Return what the steps of a plan return, where every question has its own reply."""
    known, replies = {"question": _question(plan)["question"]}, iter(REPLIES)
    for line in plan:
        step, _, call = line.partition(" = ")
        given = known[call.partition("text=")[2].rstrip(")").removesuffix(".value")]
        known[step] = f"told: {next(replies)}" if call.startswith("ask") else f"seen: {given}"
    return list(known.values())[1:]


def _question(plan: Sequence[str]) -> dict[str, str]:
    return {"question": f"please plan: {'; '.join(plan)}", "thread_id": "t"}


def _calls(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []
