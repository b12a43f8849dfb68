from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from casewright.errors import InputError
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe, recipe_names

WHOLE = """
[data]
queries = "own/queries.jsonl"
toolbox = "tools.json"
copies = 2
seed = 7

[data.sampling]
method = "random"
size = 10

[data.tevo]
rename_tools = 1

[data.ttg]
tasks_per_query = 4
tasks = ["order_steps"]

[data.instructions]
share = 0.2
[[data.instructions.sources]]
path = "own/queries.jsonl"
[[data.instructions.sources]]
path = "a/b"

[lora]
target_modules = ["q_proj"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    for name in ("own/queries.jsonl", "tools.json"):
        (tmp_path / name).write_text("", encoding="utf-8")
    return tmp_path


def write_recipe(folder: Path, text: str) -> Path:
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return file


def error_of(folder: Path, text: str) -> str:
    """Return the error message about a recipe, without the path of its file."""
    file = write_recipe(folder, text)
    with pytest.raises(InputError) as caught:
        Recipe.read(file, domains=["shopping", "legal"])
    message = str(caught.value)
    assert message.startswith(str(file))
    assert "\n" not in message
    return message.removeprefix(f"{file}: ")


def test_recipe_uses_defaults_for_missing_fields(folder: Path) -> None:
    recipe = Recipe.read(write_recipe(folder, WHOLE))
    assert (recipe.data.copies, recipe.data.seed, recipe.data.validation) == (2, 7, 0.05)
    assert (recipe.data.sampling.method, recipe.data.sampling.size) == ("random", 10)
    assert recipe.data.ttg.tasks == ("order_steps",)
    assert (recipe.data.tevo.rename_tools, recipe.data.tevo.enabled) == (1.0, True)
    assert recipe.data.instructions.share == 0.2
    assert recipe.data.instructions.evolved == 0.5
    assert recipe.lora.target_modules == ("q_proj",)
    assert recipe.training.seed == 0


def test_files_of_a_recipe_are_relative_to_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    write_recipe(folder, WHOLE)
    monkeypatch.chdir(folder / "elsewhere")
    data = Recipe.read(Path("..", "recipe.toml")).data
    assert data.queries is not None
    assert data.queries.is_absolute()
    assert data.queries.samefile(folder / "own" / "queries.jsonl")
    first, second = data.instructions.sources
    assert Path(first.path).is_absolute()
    assert Path(first.path).samefile(data.queries)
    # The name of a data set is not a path, so it is unchanged.
    assert second.path == "a/b"


def test_recipe_with_missing_files_is_read_without_check_files(tmp_path: Path) -> None:
    file = write_recipe(tmp_path, WHOLE)
    with pytest.raises(InputError, match=r"data\.queries: There is no file"):
        Recipe.read(file)
    assert Recipe.read(file, check_files=False).data.toolbox == tmp_path / "tools.json"


def test_recipe_requires_only_the_name_of_a_domain(folder: Path) -> None:
    data = Recipe.read(write_recipe(folder, '[data]\ndomain = "shopping"')).data
    assert (data.domain, data.queries, data.toolbox) == ("shopping", None, None)


SHOP = '[data]\ndomain = "shopping"\n'


#: Invalid recipes, each with the beginning of its error message.
INVALID = [
    ("", "data is missing. Add it."),
    ("[data]", "data: The tools to plan with are missing. Write domain, or toolbox and"),
    ('[data]\ndomain = "shop"', "data.domain: There is no domain 'shop'. Did you mean shop"),
    ('[data]\ndomain = "x"', "data.domain: There is no domain 'x'. Domains are legal, shop"),
    (SHOP + 'toolbox = "tools.json"', "data: domain and toolbox are both given. Remove one"),
    ('[data]\ntoolbox = "tools.json"', "data: toolbox is given without queries. Add queries"),
    (SHOP + 'queries = "none.jsonl"', 'data.queries: There is no file "none.jsonl" in'),
    (SHOP + 'queries = "own"', 'data.queries: "own" is a folder. Give a file.'),
    (SHOP + "queries = 3", "data.queries: 3 is not possible. Input should be a valid string."),
    (
        SHOP + "copies = 0",
        "data.copies: 0 is not possible. Input should be greater than or equal to 1.",
    ),
    (SHOP + 'copies = "3"', 'data.copies: "3" is not possible. Input should be a valid integer'),
    (SHOP + "copies = true", "data.copies: true is not possible. Input should be a valid integ"),
    (SHOP + "copies = 2020-01-01", 'data.copies: "2020-01-01" is not possible. Input should be'),
    (
        SHOP + "validation = nan",
        "data.validation: NaN is not possible. Input should be less than 1",
    ),
    (SHOP + "copie = 1", "data.copie: There is no such field. Did you mean copies?"),
    (SHOP + "Copies = 1", "data.Copies: There is no such field. Did you mean copies?"),
    (SHOP + "qqq = 1", "data.qqq: There is no such field. The fields here are domain, queries,"),
    (SHOP + "share = 0.2", "data.share: There is no such field. The field belongs to [data.instru"),
    (
        SHOP + "[data.tevo]\nlora = 1",
        "data.tevo.lora: There is no such field. The field belongs to the top",
    ),
    (SHOP + "[dat]\nx = 1", "dat: There is no such field. Did you mean data?"),
    ("data = 5", "data: 5 is not possible. Input should be an object."),
    (SHOP + "[data.tevo]\nshots = -1", "data.tevo.shots: -1 is not possible. Input should be"),
    (SHOP + "[data.tevo]\nshots = 65", "data.tevo.shots: 65 is not possible. Input should be"),
    (SHOP + '[data.sampling]\nmethod = "dsq"', 'data.sampling.method: "dsq" is not possible.'),
    (SHOP + '[data.ttg]\ntasks = ["order"]', 'data.ttg.tasks.0: "order" is not possible. I'),
    (SHOP + "[data.instructions]\nshare = 1.1", "data.instructions.share: 1.1 is not possible"),
    (SHOP + "[data.ttg]\ntasks_per_query = 0", "data: The set would be empty: data.ttg.tasks_per"),
    (
        SHOP + "[data.instructions]\nshare = 0.2",
        "data.instructions: share is 0.2, and there are no instructions. Add [[data.instructions",
    ),
    (
        SHOP + '[[data.toolsets]]\nreader = "bfcl"\npath = "none"',
        'data.toolsets.0.path: There is nothing at "none" in ',
    ),
    (
        SHOP + '[[data.toolsets]]\nreader = "none"\npath = "own"',
        "data.toolsets.0.reader: There is no reader of tool-use sets 'none'.",
    ),
    (SHOP + "[lora]\ntarget_modules = 5", "lora.target_modules: 5 is not possible. Input"),
    (SHOP + "[lora]\ntarget_modules = [5]", "lora.target_modules.0: 5 is not possible. Input"),
    (SHOP + '[training]\nschedule = "cos"', 'training.schedule: "cos" is not possible. Input'),
    (SHOP + "[training]\nepochs = 1\nsteps = 1", "training: epochs and steps are both given."),
    # This error involves several settings.
    (
        SHOP + '[model]\ndevice = "cpu"\nquantisation = "4bit"',
        'model.quantisation: model.quantisation = "4bit" needs CUDA',
    ),
]


@pytest.mark.parametrize(
    ("text", "message"), INVALID, ids=[message.partition(":")[0][:30] for _, message in INVALID]
)
def test_invalid_recipe_is_refused_naming_the_field_and_the_remedy(
    folder: Path, text: str, message: str
) -> None:
    assert message in error_of(folder, text)


def test_recipe_error_lists_three_problems_and_counts_the_rest(folder: Path) -> None:
    fields = ["unchanged", "reword", "examples", "no_example", "drop_tools"]
    error = error_of(folder, SHOP + "[data.tevo]\n" + "\n".join(f"{name} = 2" for name in fields))
    assert error.count("is not possible") == 3
    assert error.endswith("And 2 more.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[data", "is no TOML"),
        (b"[data]\nseed = 1 2\nqueries = 3", "line 2"),
        (b"\xff", "cannot be read"),
        (None, "Give a recipe"),
    ],
    ids=["cut", "two-values", "latin", "absent"],
)
def test_file_that_is_no_recipe_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "recipe.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Recipe.read(file)


def test_recipe_is_found_by_its_file_or_by_its_name(folder: Path) -> None:
    file = write_recipe(folder, WHOLE)
    assert find_recipe(str(file)) == file
    for name in recipe_names():
        assert find_recipe(name).is_file()


def test_unknown_recipe_is_refused_listing_the_shipped_recipes() -> None:
    with pytest.raises(InputError) as caught:
        find_recipe("none-such")
    assert all(name in str(caught.value) for name in recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_is_valid(name: str) -> None:
    recipe = Recipe.read(find_recipe(name), domains=["shopping"], check_files=False)
    assert recipe.data.domain == "shopping"
    assert recipe.training.max_length >= 2048


SEVEN_BILLION = ("mistral-7b-80gb", "mistral-7b-24gb")


def sections(table: dict[str, Any]) -> set[str]:
    """Return the names of a recipe's sections, and of those in [data]."""
    data_sections = [name for name, part in table["data"].items() if isinstance(part, dict)]
    return {*table, *(f"data.{name}" for name in data_sections)}


@pytest.mark.parametrize("large", SEVEN_BILLION)
def test_small_recipe_has_the_same_sections_as_the_7b_recipes(large: str) -> None:
    tables = [tomllib.loads(find_recipe(name).read_text()) for name in ("small", large)]
    small, other = (sections(table) for table in tables)
    # Only the small model trains on the corpus; only 7B models need instructions.
    assert small - {"data.corpus", "data.instructions"} == other - {"data.instructions"}
    recipes = [Recipe.read(find_recipe(name), check_files=False) for name in ("small", large)]
    for recipe in recipes:
        assert (recipe.lora.method, recipe.lora.target_modules) == ("lora", "all-linear")
        assert recipe.data.sampling.method == "dqs"
        assert recipe.data.tevo.enabled
        assert recipe.data.ttg.tasks_per_query > 1
    assert recipes[0].model.base != recipes[1].model.base
    assert recipes[0].training != recipes[1].training


@pytest.mark.parametrize("name", SEVEN_BILLION)
def test_recipes_for_7b_match_the_best_row_of_table_3_of_reaper(name: str) -> None:
    recipe = Recipe.read(find_recipe(name), check_files=False)
    instructions = recipe.data.instructions
    assert recipe.model.base == "mistralai/Mistral-7B-Instruct-v0.2"
    assert recipe.data.ttg.tasks_per_query == 4
    assert (instructions.share, instructions.evolved) == (1, 1)
    assert [source.reader for source in recipe.data.toolsets] == ["toolalpaca"]
