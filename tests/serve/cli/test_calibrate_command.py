"""`casewright calibrate` measures the settings that select demonstrations."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from casewright.finetune.demonstrations.cases_file import demonstration_schema
from casewright.stores import CaseStore, default_encoder
from tests.serve.helpers import command, environment, new_home, one_line_error, result, run
from tests.support.tiny_mistral import save_tiny

TOWNS = ("Kiel", "Bonn", "Ulm", "Trier", "Jena", "Essen", "Worms", "Aachen", "Lingen", "Emden")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("calibrate") / "home")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny", initializer_range=0.3)


def write_towns(path: Path, count: int = 10) -> Path:
    rng = random.Random(0)
    lines = []
    for number in range(count):
        town = TOWNS[number % len(TOWNS)]
        lines.append(
            {
                "question": f"How many inns are in {town} on day {number}?",
                "answer": f"There are {rng.randint(2, 90)}.",
                "wrong": [f"There are {rng.randint(100, 900)}.", "None."],
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def cases(home: Path) -> Path:
    return write_towns(home / "towns.jsonl")


def calibrate(home: Path, *arguments: str | Path) -> dict[str, Any]:
    options: Sequence[str | Path] = ("calibrate", *arguments, "-k", "2", "--lambda-d", "0,0.5,1")
    report: dict[str, Any] = result(run(home, *options, "--json"))
    return report


def test_calibrate_returns_one_row_per_setting_and_the_best_setting(
    home: Path, model: Path, cases: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "figure.png"
    report = calibrate(home, "--cases", cases, "--model", model, "--plot", plot)
    settings = [(row["lambda_d"], row["lambda_b"]) for row in report["rows"]]
    assert settings == [(d, b) for d in (0.0, 0.5, 1.0) for b in (0.9, 0.95, 1.0)]
    for row in report["rows"]:
        assert row["interval"][0] <= row["benefit"] <= row["interval"][1]
        assert row["dpo"] < 0
    best = max(report["rows"], key=lambda row: row["benefit"])
    assert report["choice"]["benefit"] == best["benefit"]
    assert set(report["held_out"]) == {"chosen", "nearest", "random"}
    assert (report["questions"], report["k"], report["measure"]) == (10, 2, "margin")
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_calibrate_stores_the_cases_of_a_file_with_their_measured_quality(
    home: Path, model: Path, cases: Path
) -> None:
    calibrate(home, "--cases", cases, "--model", model)
    (folder,) = (home / "data" / "demonstrations").glob("towns-*")
    with CaseStore(demonstration_schema(default_encoder()), folder) as store:
        qualities = [case.quality for case in store.all()]
    assert len(qualities) == 10
    assert all(quality is not None and -20 <= quality < 0 for quality in qualities)


def test_calibrate_updates_its_stored_cases_when_the_file_changes(
    home: Path, model: Path, tmp_path: Path
) -> None:
    file, scores = write_towns(tmp_path / "some.jsonl"), tmp_path / "scores.sqlite"
    options = ("--cases", file, "--model", model, "--scores", scores)
    calibrate(home, *options)
    lines = file.read_text(encoding="utf-8").splitlines()
    new_case = {"question": "How far is Ulm?", "answer": "Far.", "wrong": ["Near."]}
    file.write_text("\n".join([*lines[2:], json.dumps(new_case)]), encoding="utf-8")
    assert calibrate(home, *options)["questions"] == 9
    with CaseStore(
        demonstration_schema(default_encoder()),
        next((home / "data" / "demonstrations").glob("some-*")),
    ) as store:
        qualities = {case.problem["question"]: case.quality for case in store.all()}
    assert len(qualities) == 9
    assert qualities["How far is Ulm?"] is not None


def test_calibrate_prints_its_cost_before_and_the_selector_call_after(
    home: Path, model: Path, cases: Path, tmp_path: Path
) -> None:
    scores = tmp_path / "scores.sqlite"
    options = ("--cases", cases, "--model", model, "--scores", scores, "--lambda-d", "1", "-k", "2")
    estimate = run(home, "calibrate", *options, "--estimate")
    assert (estimate.returncode, estimate.stdout) == (0, "")
    assert "tokens; about" in estimate.stderr
    completed = run(home, "calibrate", *options)
    assert completed.returncode == 0
    assert "Use λ_d = 1 and λ_b = " in completed.stdout
    assert "MarginalSelector(lambda_d=1, lambda_b=" in completed.stdout
    assert "All answers have their scores already." in run(home, "calibrate", *options).stderr


def test_calibrate_measures_the_questions_of_a_file_instead_of_the_cases(
    home: Path, model: Path, cases: Path, tmp_path: Path
) -> None:
    file = tmp_path / "asked.jsonl"
    lines = [
        {"question": f"How many inns has {town}?", "right": ["Some.", "A few."], "wrong": ["-1"]}
        for town in TOWNS[:4]
    ]
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    report = calibrate(home, "--cases", cases, "--model", model, "--questions", file)
    assert report["questions"] == 4


def test_calibrate_of_a_users_own_store_leaves_quality_out(
    home: Path, model: Path, tmp_path: Path
) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "from casewright.stores import Case, CaseSchema, CaseStore, default_encoder, text_facet\n"
        "def inns():\n"
        "    facet = text_facet('ask', default_encoder(), inter=False)\n"
        "    store = CaseStore(CaseSchema('inns', (facet,)), ':memory:')\n"
        "    store.add([Case({'ask': f'How many in town {n}?'}, f'There are {n}.',\n"
        "                    metadata={'town': n}) for n in range(6)])\n"
        "    return store\n",
        encoding="utf-8",
    )
    report = calibrate(home, "--store", f"{code}:inns", "--model", model, "--group", "town")
    assert report["questions"] == 6
    # The cases have no measured quality, so no other λ_b is tried.
    assert {row["lambda_b"] for row in report["rows"]} == {1.0}
    given = run(home, "calibrate", "--store", f"{code}:inns", "--model", model, "--lambda-b", "1,2")
    assert "--lambda-b weighs the cases' quality" in one_line_error(given)


def test_calibrate_measures_plan_cases_of_a_domain_with_the_shipped_model(own_home: Path) -> None:
    report = calibrate(own_home, "--domain", "shopping", "--model", "mistral", "--limit", "3")
    assert (report["model"], report["questions"]) == ("mistral", 3)


@pytest.mark.timeout(300)
def test_killed_run_of_calibrate_resumes_and_scores_nothing_twice(
    home: Path, model: Path, tmp_path: Path
) -> None:
    file, scores = write_towns(tmp_path / "many.jsonl", 40), tmp_path / "scores.sqlite"
    arguments = ["calibrate", "--cases", file, "--model", model, "--scores", scores, "--json"]
    arguments += ["--lambda-d", "0,1", "--lambda-b", "0.9,1"]
    argv = [*command(), *map(str, arguments)]
    previous: dict[str, int] = {}
    rng = random.Random(1)
    for _ in range(2):
        process = subprocess.Popen(
            argv, env=environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        target = len(previous) + rng.randint(10, 60)
        while process.poll() is None and len(stored_scores(scores)) < target:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        current = stored_scores(scores)
        # A score that is computed again gets another row number.
        assert current.items() >= previous.items()
        assert len(current) > len(previous)
        previous = current
    resumed = result(run(home, *map(str, arguments)))
    assert stored_scores(scores).items() >= previous.items()
    other_scores = tmp_path / "other.sqlite"
    others = [str(other_scores if argument == scores else argument) for argument in arguments]
    # A new home, since the other home has the measured qualities of the cases.
    uninterrupted = result(run(tmp_path / "home", *others))
    # The scores include those without demonstrations, which are the quality of the cases.
    assert len(stored_scores(other_scores)) == len(stored_scores(scores))
    # The batches hold other prompts, which changes the last digits.
    assert resumed["choice"]["lambda_d"] == uninterrupted["choice"]["lambda_d"]
    for row, expected in zip(resumed["rows"], uninterrupted["rows"], strict=True):
        assert row["benefit"] == pytest.approx(expected["benefit"], abs=1e-4)


def stored_scores(file: Path) -> dict[str, int]:
    """Return the row number of each stored score."""
    if not file.is_file():
        return {}
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10) as database:
        try:
            return dict(database.execute("SELECT key, rowid FROM prompts"))
        except sqlite3.OperationalError:
            # The table does not exist yet.
            return {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of --cases FILE, --domain NAME and --store"),
        (["--cases", "towns.jsonl", "--domain", "shopping"], "one of --cases"),
        (["--cases", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--cases", "broken.jsonl"], "line 2 is no JSON"),
        (["--cases", "other.jsonl"], "line 1: answer: Field required"),
        (["--cases", "empty.jsonl"], "is empty"),
        (["--cases", "one.jsonl"], "at least two"),
        (["--cases", "towns.jsonl", "--group", "x"], "go with --store"),
        (["--cases", "towns.jsonl", "--lambda-d", "a,b"], "not a list of numbers"),
        (["--cases", "towns.jsonl", "--lambda-d", "0,2"], "from 0 to 1"),
        (["--cases", "towns.jsonl", "--measure", "joy"], "no measure 'joy'"),
        (["--cases", "towns.jsonl", "--scores", "."], "cannot be read or written"),
        (["--cases", "towns.jsonl", "--questions", "towns.jsonl"], "right: Field required"),
        (["--store", "nowhere.py:x"], "there is no such file"),
        (["--store", "mine.py:nothing"], "mine.py has no nothing"),
        (["--store", "bad.py:x"], "ZeroDivisionError"),
        (["--domain", "nowhere"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_invalid_options_and_files_of_calibrate_print_an_error_of_one_line(
    home: Path, model: Path, cases: Path, arguments: list[str], message: str
) -> None:
    for name, text in (
        ("broken.jsonl", '{"question": "a", "answer": "b"}\n{"question'),
        ("other.jsonl", '{"question": "a"}'),
        ("empty.jsonl", "\n"),
        ("one.jsonl", '{"question": "a", "answer": "b"}'),
        ("mine.py", "x = 1"),
        ("bad.py", "x = 1 / 0"),
    ):
        (home / name).write_text(text, encoding="utf-8")
    completed = run(home, "calibrate", "--model", model, *arguments)
    assert message in one_line_error(completed)


def test_missing_model_of_calibrate_prints_an_error_of_one_line(home: Path, cases: Path) -> None:
    completed = run(home, "calibrate", "--cases", cases, "--model", "./nowhere")
    assert "no folder './nowhere'" in one_line_error(completed)
