"""`casewright ask --save` saves a run, and `casewright show` prints the saved run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.errors import InputError
from casewright.graph import Answer
from casewright.graph.run_file import read_run, save_run
from tests.serve.helpers import GALAXY, Output, one_line_error, result, run
from tests.support.examples import at_most

TEXTS = st.text()
NAMES = st.text(max_size=8)
TIMES = st.floats(min_value=0, max_value=1e9)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    # Lone surrogates too, since a tool may cut a text within a surrogate pair.
    | st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xDBFF)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)
STATUSES = ["done", "empty", "failed", "timed_out", "skipped"]
STEP_FIELDS = st.fixed_dictionaries(
    {
        "arguments": OBJECTS,
        "error": TEXTS,
        "attempts": st.integers(0, 9),
        "started": TIMES,
        "milliseconds": TIMES,
        "reports": st.lists(OBJECTS, max_size=2),
    }
)
EVIDENCE = st.fixed_dictionaries(
    {"tool": NAMES, "text": TEXTS, "source": TEXTS, "row": OBJECTS, "final": st.booleans()}
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    tools = draw(st.lists(st.sampled_from(["find", "read"]), min_size=1, max_size=3))
    steps = []
    for number, tool in enumerate(tools, 1):
        status = draw(st.sampled_from(STATUSES))
        rows = draw(st.lists(OBJECTS, max_size=2)) if status == "done" else []
        step = {"step": f"s{number}", "tool": tool, "status": status, "rows": rows}
        steps.append({**step, **draw(STEP_FIELDS)})
    evidence = [
        {"id": id_, "step": f"s{draw(st.integers(1, len(steps)))}", **draw(EVIDENCE)}
        for id_ in draw(st.lists(NAMES, max_size=3, unique=True))
    ]
    return Answer(
        text=draw(TEXTS),
        citations=[item["id"] for item in evidence if draw(st.booleans())],
        evidence=evidence,
        missing=draw(st.lists(TEXTS, max_size=2)),
        plan="\n".join(f"s{number} = {tool}()" for number, tool in enumerate(tools, 1)),
        planner={"name": draw(NAMES), "fallback": draw(TEXTS), "tokens": draw(OBJECTS)},
        generator=draw(NAMES),
        steps=steps,
        usage={f"{part}_ms": draw(TIMES) for part in ("planning", "execution", "generation")},
        run_id=draw(NAMES),
    )


ANSWER = Answer(
    text="It has 8 GB. [E1]",
    citations=["E1"],
    evidence=[
        {
            "id": "E1",
            "step": "s1",
            "tool": "find",
            "text": "8 GB",
            "source": "facts:1",
            "row": {"value": "8 GB"},
            "final": True,
        }
    ],
    missing=[],
    plan="s1 = find()",
    planner={"name": "case", "fallback": ""},
    generator="extractive",
    steps=[
        {
            "step": "s1",
            "tool": "find",
            "status": "done",
            "arguments": {},
            "rows": [{"value": "8 GB"}],
            "error": "",
            "attempts": 1,
            "started": 0.1,
            "milliseconds": 2.5,
            "reports": [],
        }
    ],
    usage={"planning_ms": 1.0, "execution_ms": 2.6, "generation_ms": 0.5},
    run_id="one",
)


@pytest.fixture(scope="module")
def saved(home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Output]:
    file = tmp_path_factory.mktemp("runs") / "galaxy.json"
    return file, run(home, "ask", GALAXY, "--save", file, "--json")


@given(answers(), TEXTS)
@settings(max_examples=at_most(60), deadline=None)
def test_saved_run_is_read_unchanged(answer: Answer, question: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        save_run(file, answer, question)
        saved = read_run(file)
    assert (saved.answer, saved.question) == (answer, question)


def test_run_that_was_saved_without_its_question_is_read_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    save_run(file, ANSWER)
    assert "question" not in json.loads(file.read_text())
    assert (read_run(file).answer, read_run(file).question) == (ANSWER, "")
    assert run(tmp_path, "show", file).stdout.startswith("Plan\n")


def test_show_json_prints_the_same_as_ask_json(saved: tuple[Path, Output], tmp_path: Path) -> None:
    file, ask_result = saved
    completed = run(tmp_path, "show", file, "--json")
    assert (completed.returncode, completed.stdout) == (0, ask_result.stdout)


def test_show_prints_the_question_and_the_same_answer_as_ask(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    completed = run(home, "ask", GALAXY, "--save", file)
    assert completed.returncode == 0, completed.stderr
    assert run(tmp_path, "show", file).stdout == f"Question\n{GALAXY}\n\n{completed.stdout}"
    assert "Planned by case" in completed.stdout


def test_show_offers_the_alternative_plan_of_an_unsure_planner(tmp_path: Path) -> None:
    alternative = "s1 = no_evidence()"
    planner = {"name": "case", "fallback": "", "asks_back": True, "alternatives": [alternative]}
    file = tmp_path / "run.json"
    save_run(file, replace(ANSWER, planner=planner), GALAXY)
    assert f"Did you mean this instead?\n{alternative}\n" in run(tmp_path, "show", file).stdout
    save_run(file, replace(ANSWER, planner=planner | {"asks_back": False}), GALAXY)
    assert "Did you mean" not in run(tmp_path, "show", file).stdout


def test_saved_run_contains_neither_context_nor_scope(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    context = json.dumps({"product_id": "P021", "session": "the-secret-session"})
    arguments = ("ask", "Do people like it?", "--customer", "C002", "--context", context)
    result(run(home, *arguments, "--save", file, "--json"))
    assert "the-secret-session" not in file.read_text(encoding="utf-8")
    saved_run = json.loads(file.read_text(encoding="utf-8"))
    assert saved_run.keys() == {"format", "kind", "question", "answer"}
    assert saved_run["question"] == "Do people like it?"


def test_ask_refuses_an_unwritable_save_file_before_it_plans(home: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "run.json"):
        completed = run(home, "ask", GALAXY, "--save", path, "--planner", "nope")
        assert one_line_error(completed).startswith(f"--save {path} cannot be written")


def test_failed_save_of_a_run_leaves_the_file_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    save_run(file, ANSWER)
    before = file.read_bytes()
    invalid = Answer(**{**ANSWER.to_json(), "usage": {"planning_ms": float("nan")}})
    with pytest.raises(InputError, match="JSON cannot hold it"):
        save_run(file, invalid)
    assert file.read_bytes() == before


def new_run(**parts: Any) -> str:
    answer = {**ANSWER.to_json(), **parts}
    return json.dumps({"format": 1, "kind": "casewright run", "answer": answer})


def run_without(part: str) -> str:
    answer = {name: value for name, value in ANSWER.to_json().items() if name != part}
    return json.dumps({"format": 1, "kind": "casewright run", "answer": answer})


STEP, ITEM = ANSWER.steps[0], ANSWER.evidence[0]
#: Content of a file, and a part of the error message.
DAMAGED = {
    "nothing": ("", "its JSON is invalid or cut"),
    "half of a run": (new_run()[:300], "its JSON is invalid or cut"),
    "no UTF-8": (b"\xff\xfe{", "its JSON is invalid"),
    "deep JSON": ("[" * 100_000, "its JSON is invalid"),
    "NaN": (new_run(run_id=1).replace('"run_id": 1', '"run_id": NaN'), "NaN is not a JSON number"),
    "list": ("[]", "is not a saved run"),
    "another file": ('{"format": 1, "answer": {}}', "is not a saved run"),
    "newer format": ('{"format": 2, "kind": "casewright run"}', "format '2'; this Casewright"),
    "no answer": ('{"format": 1, "kind": "casewright run"}', "damaged run: answer"),
    "no text": (new_run(text=None), "answer.text"),
    "unknown part": (new_run(more=1), "answer.more"),
    "unknown status": (new_run(steps=[{**STEP, "status": "good"}]), "steps.0.status"),
    "time as text": (new_run(steps=[{**STEP, "milliseconds": "1"}]), "steps.0.milliseconds"),
    "evidence without source": (
        new_run(evidence=[{key: ITEM[key] for key in ITEM if key != "source"}]),
        "evidence.0.source",
    ),
    "no times": (new_run(usage={}), "usage.planning_ms"),
    "no alternatives": (
        new_run(planner={"name": "case", "fallback": "", "alternatives": 1}),
        "planner.alternatives",
    ),
    "no planner": (new_run(planner={"name": "case"}), "planner.fallback"),
    "more lines than steps": (new_run(plan="s1 = a()\ns2 = b()"), "plan does not have the 1 steps"),
    "foreign citation": (new_run(citations=["E9"]), "cites 'E9'"),
    "no usage at all": (run_without("usage"), "answer.usage"),
    "no run id": (run_without("run_id"), "answer.run_id"),
    "step without reports": (
        new_run(steps=[{key: STEP[key] for key in STEP if key != "reports"}]),
        "steps.0.reports",
    ),
    "too large a number": (
        new_run(steps=[{**STEP, "rows": [{"value": 0.25}]}]).replace("0.25", "1e999"),
        "damaged run: the number 1e999",
    ),
    "true as format": (new_run().replace('"format": 1', '"format": true'), "of format 'True'"),
    "question as number": (new_run().replace('"kind"', '"question": 7, "kind"'), "question"),
    "steps out of order": (new_run(steps=[{**STEP, "step": "s2"}]), "not 's1'"),
    "another tool than planned": (new_run(steps=[{**STEP, "tool": "read"}]), "with 'read'"),
    "fewer planned steps than lines": (
        new_run(plan="s1 = find()\n", steps=[STEP, {**STEP, "step": "s2"}]),
        "its plan does not have the 2 steps",
    ),
    "results of what failed": (new_run(steps=[{**STEP, "status": "failed"}]), "has results"),
    "evidence twice": (new_run(evidence=[ITEM, ITEM]), "have the id 'E1'"),
    "evidence of no step": (new_run(evidence=[{**ITEM, "step": "s7"}]), "of 's7'"),
    "time before the start": (new_run(steps=[{**STEP, "started": -1.0}]), "steps.0.started"),
    "negative time": (new_run(steps=[{**STEP, "milliseconds": -1.0}]), "steps.0.milliseconds"),
    "negative attempts": (new_run(steps=[{**STEP, "attempts": -1}]), "steps.0.attempts"),
    "negative usage": (new_run(usage={**ANSWER.usage, "planning_ms": -1.0}), "usage.planning_ms"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_show_refuses_a_damaged_run_file_and_names_the_fault(name: str, tmp_path: Path) -> None:
    content, fault = DAMAGED[name]
    file = tmp_path / "run.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = one_line_error(run(tmp_path, "show", file))
    assert message.startswith(f"{file} is ")
    assert fault in message


def test_show_refuses_a_missing_file_or_a_folder(tmp_path: Path) -> None:
    assert "cannot be read" in one_line_error(run(tmp_path, "show", "none.json"))
    assert "cannot be read" in one_line_error(run(tmp_path, "show", tmp_path))


HOSTILE = "\x1b[2J\x9b31m\u202etxet\x00\r[bold]\ud800"


def save_hostile_run(file: Path) -> Path:
    report = {"event": "feedback_round", "note": HOSTILE}
    end = {"event": "feedback_ended", "reason": "settled", "judge": HOSTILE}
    save_run(
        file,
        Answer(
            **{
                **ANSWER.to_json(),
                "text": f"  {HOSTILE}",
                "plan": HOSTILE,
                "generator": HOSTILE,
                "planner": {"name": HOSTILE, "fallback": HOSTILE},
                "evidence": [{**ITEM, "source": HOSTILE}],
                "steps": [{**STEP, "reports": [report, end]}],
            }
        ),
        HOSTILE,
    )
    return file


def test_show_prints_no_control_or_bidirectional_characters_of_a_run(tmp_path: Path) -> None:
    completed = run(tmp_path, "show", save_hostile_run(tmp_path / "run.json"))
    assert completed.returncode == 0, completed.stderr
    assert not set("\x1b\x9b\u202e\x00\r") & set(completed.stdout)
    assert completed.stdout.count("[bold]") >= 6


def test_show_json_escapes_hostile_text_and_loses_none_of_it(tmp_path: Path) -> None:
    file = save_hostile_run(tmp_path / "run.json")
    completed = run(tmp_path, "show", file, "--json")
    assert not set("\x1b\x9b\u202e\x00\r") & set(completed.stdout)
    assert result(completed) == read_run(file).answer.to_json()
