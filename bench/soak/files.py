"""Files of other kinds that are damaged at any byte: an error says so, or they are read."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from casewright.bench.soak.child import in_child
from casewright.bench.soak.counts import Bounds, Counts
from casewright.bench.soak.damage import damage
from casewright.bench.soak.service import KEY, QuestionPlanner, served
from casewright.errors import CasewrightError, told
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.training.run import last_whole, seal
from casewright.graph import Answer, build_graph
from casewright.graph.run_file import read_run, save_run
from casewright.planner.annotated import read_annotated
from casewright.stores.engines.file_blocks import copy_files
from casewright.stores.feedback.judge_model import JudgeModel
from casewright.tools import Toolbox, tool_from_function
from casewright.tools.from_file import toolbox_from_file, toolbox_to_records

#: By their names, what reads the files that ``written`` writes. None of them has a checksum: what
#: can still be read is what they say.
READERS: Mapping[str, Callable[[Path], Any]] = {
    "run.json": read_run,
    "toolbox.json": toolbox_from_file,
    "queries.jsonl": read_annotated,
    "judge.json": JudgeModel.load,
    "recipe.toml": lambda file: Recipe.read(file, files=False),
}
#: Of so many damages, one is of a threads' file, and one of a training's checkpoint.
SEALED = 10
ASKED = {"question": "please plan: s1 = look(text=question)", "thread_id": "t"}


def damaged_texts(bounds: Bounds, folder: Path) -> Counts:
    """Damage files that people and programs write: reading one ends well, or by an error of ours.

    A checkpoint of a training, which has checksums, must be found damaged.
    """
    counts, chance = Counts("damaged text or checkpoint"), random.Random(bounds.seed)
    written(folder / "texts")
    checkpoint = folder / "training" / "checkpoint-1"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(chance.randbytes(50_000))
    seal(checkpoint)
    for number in bounds.trials(counts):
        sealed = number % SEALED == 0
        place = copy_files(folder / ("training" if sealed else "texts"), folder / "trial")
        how = damage(place, chance)
        trial = f"{bounds.seed}.{number} {how}"
        if sealed:
            whole, _ = last_whole(place)
            counts.add("told" if whole is None else "found whole", trial)
        else:
            counts.add(_read(place / how.split()[1]), trial)
        shutil.rmtree(place)
    return counts


def written(folder: Path) -> None:
    """Write one file of each kind."""
    folder.mkdir()

    def look(text: str) -> str:
        """Looks a text up."""
        return f"seen: {text}"

    toolbox = Toolbox([tool_from_function(look)])
    state = build_graph(toolbox, QuestionPlanner()).invoke({"question": ASKED["question"]})
    save_run(folder / "run.json", Answer.from_json(state["answer"]), ASKED["question"])
    (folder / "toolbox.json").write_text(json.dumps(toolbox_to_records(toolbox), indent=1))
    query = {"id": "1", "query": "where is the mill", "plan": "s1 = look(text=question)"}
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({**query, "id": str(number)}) + "\n" for number in range(20))
    )
    JudgeModel.shipped().save(folder / "judge.json")
    shutil.copy(find_recipe("small"), folder / "recipe.toml")


def _read(file: Path) -> str:
    try:
        READERS[file.name](file)
    except CasewrightError:
        return "told"
    except Exception as error:  # noqa: BLE001
        return told(error)
    return "sound"


def damaged_threads(bounds: Bounds, folder: Path) -> Counts:
    """Damage a closed file of threads: the answer is the same, or an error says what is wrong."""
    counts, chance = Counts("damaged threads"), random.Random(bounds.seed)
    before = folder / "before"
    before.mkdir()
    _, right = in_child(looked_at, before, True)
    for number in bounds.trials(counts):
        place = copy_files(before, folder / "trial")
        for other in ("log", "threads.db.lock"):
            (place / other).unlink(missing_ok=True)
        how = damage(place, chance)
        outcome, state = in_child(looked_at, place, False)
        same = outcome == "done" and (state == right or how.startswith("gone"))
        clear = outcome == "told" or "damaged" in str(state)
        counts.add(
            "sound" if same else "told" if clear else f"{outcome} {state!r:.300}",
            f"{bounds.seed}.{number} {how}",
        )
        shutil.rmtree(place)
    return counts


def looked_at(folder: Path, asks: bool) -> Any:
    """Return what a service tells of a thread, and of the request that began it, sent again."""

    async def look() -> Any:
        async with served(folder) as client:
            if asks:
                await client.post("/ask", json=ASKED, headers=KEY)
            state = (await client.get("/threads/t")).json()
            again = (await client.post("/ask", json=ASKED, headers=KEY)).json()
            return state, again

    return asyncio.run(look())
