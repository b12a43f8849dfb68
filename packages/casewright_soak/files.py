"""Trials with damaged text files, checkpoints and threads, which must be read or refused."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casewright.errors import CasewrightError, one_line
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training.run import last_complete, write_hashes
from casewright.graph import Answer, build_graph
from casewright.graph.run_file import read_run, save_run
from casewright.planner.annotated import read_annotated
from casewright.stores.feedback.offline_judge import JudgeModel
from casewright.tools import Toolbox, tool_from_function, toolbox_from_file, toolbox_to_records
from casewright_soak.damage import damage_copy
from casewright_soak.service import KEY_HEADER, QuestionPlanner, run_service
from casewright_soak.trials import Bounds, Counts, in_child

#: The readers of the files of ``write_texts``, by file name. The files have no checksums, so a
#: damaged file that is read without an error counts as sound.
READER_BY_FILE: Mapping[str, Callable[[Path], Any]] = {
    "run.json": read_run,
    "toolbox.json": toolbox_from_file,
    "queries.jsonl": read_annotated,
    "judge.json": JudgeModel.load,
    "recipe.toml": lambda file: Recipe.read(file, check_files=False),
}
#: On average, every tenth trial damages a training's checkpoint instead of a text file.
CHECKPOINT_EVERY = 10
REQUEST = {"question": "please plan: s1 = look(text=question)", "thread_id": "t"}


def damaged_texts(bounds: Bounds, folder: Path) -> Counts:
    """Damage text files, which must be read or refused with a ``CasewrightError``.

    A training's checkpoint has checksums, so damage to it must be detected.
    """
    write_texts(folder / "texts")
    checkpoint = folder / "training" / "checkpoint-1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(random.Random(bounds.seed).randbytes(50_000))
    write_hashes(checkpoint)

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        if original.name == "training":
            return "told" if last_complete(copy)[0] is None else "damage not detected"
        file = copy / description.split()[1]
        try:
            READER_BY_FILE[file.name](file)
        except CasewrightError:
            return "told"
        except Exception as error:  # noqa: BLE001
            return one_line(error)
        return "sound"

    names = ["texts"] * (CHECKPOINT_EVERY - 1) + ["training"]
    return damage_copy(bounds, Counts("damaged text or checkpoint"), folder, *names, judge=judge)


def write_texts(folder: Path) -> None:
    """Write a file for each of ``READER_BY_FILE``."""
    folder.mkdir()

    def look(text: str) -> str:
        """Looks a text up."""
        return f"seen: {text}"

    toolbox = Toolbox([tool_from_function(look)])
    state = build_graph(toolbox, QuestionPlanner()).invoke({"question": REQUEST["question"]})
    save_run(folder / "run.json", Answer.from_json(state["answer"]), REQUEST["question"])
    (folder / "toolbox.json").write_text(json.dumps(toolbox_to_records(toolbox), indent=1))
    query = {"query": "where is the mill", "plan": "s1 = look(text=question)"}
    lines = [json.dumps({"id": str(number), **query}) + "\n" for number in range(20)]
    (folder / "queries.jsonl").write_text("".join(lines))
    JudgeModel.shipped().save(folder / "judge.json")
    shutil.copy(find_recipe("small"), folder / "recipe.toml")


def damaged_threads(bounds: Bounds, folder: Path) -> Counts:
    """Damage a closed service's files; a new service must give the same answer or a clear error."""
    (folder / "threads").mkdir()
    _, right_state = in_child(thread_state, folder / "threads", True)
    for name in ("log", "threads.db.lock"):
        (folder / "threads" / name).unlink(missing_ok=True)

    def judge(number: int, original: Path, copy: Path, description: str) -> str:
        outcome, state = in_child(thread_state, copy, False)
        if outcome == "done" and (state == right_state or description.startswith("remove")):
            return "sound"
        is_clear = outcome == "told" or "damaged" in str(state)
        return "told" if is_clear else f"{outcome} {state!r:.300}"

    return damage_copy(bounds, Counts("damaged threads"), folder, "threads", judge=judge)


async def thread_state(folder: Path, ask_first: bool) -> Any:
    """Return the thread's state and the answer to a request; ``ask_first`` creates the thread."""
    async with run_service(folder) as client:
        if ask_first:
            await client.post("/ask", json=REQUEST, headers=KEY_HEADER)
        state = (await client.get("/threads/t")).json()
        return state, (await client.post("/ask", json=REQUEST, headers=KEY_HEADER)).json()
