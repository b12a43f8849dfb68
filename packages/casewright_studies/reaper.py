"""REAPER's tables (Joshi et al. 2024) for a small model, next to the paper's figures.

Table 1 measures the shipped planners. Each row of Tables 2 and 3 trains a planner. Table 2 leaves
out parts of the data. Table 3 (section 4.3) varies the instructions and the tasks per query.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from casewright.bench.harness import TestedDomain, load_domain
from casewright.bench.report import Report
from casewright.bench.toolbox_planners import model_planner
from casewright.errors import InputError
from casewright.finetune.evaluation import EvaluationItem, as_row, evaluate, items_of, score_classes
from casewright.finetune.evaluation.intervals import wilson
from casewright.finetune.examples.data_section import DataSection
from casewright.finetune.examples.make_training_set import TrainingInputs, make_training_set
from casewright.finetune.examples.query_pool import queries_hash, query_pool
from casewright.finetune.examples.training_set import MANIFEST, write_training_set
from casewright.finetune.instructions import InstructionSource
from casewright.finetune.instructions.data_sets import BUILDERS
from casewright.finetune.queries.choose import choose_queries
from casewright.finetune.recipe.recipe import Recipe
from casewright.finetune.recipe.shipped import find_recipe
from casewright.finetune.tool_pools import read_pools
from casewright.planner import CasePlanner, ModelPlanner, Planner, plan_store, read_annotated
from casewright.planner.language_model.source import find_source
from casewright.planner.named import CLASSIFIERS, make_planner
from casewright.planner.plan_cases import EXAMPLE_COUNT
from casewright.planner.prompt import prompt_hash
from casewright.planner.shipped import adapter_example_count, adapter_folder, has_adapter
from casewright.stores.paths import cache_folder
from casewright.stores.progress import note, show_progress
from casewright_studies.published import published_tables

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel

#: A line of the report; a row of the paper has several lines, with different planners or classes.
Line = dict[str, Any]
#: The paper's tables by the names that ``--table`` takes.
TABLES = FIRST, SECOND, THIRD = "1", "2", "3"
#: The labels of planners in the lines.
TRAINED, RANDOM, CASE_PLANNER = "trained", "random weights", "case planner"
SHIPPED, BASE = "shipped planner", "its base, not tuned"
#: The columns of every line; a column without values is not printed.
COLUMNS = (
    *("table", "row", "planner", "class", "grammar", "count", "tools", "low", "high", "arguments"),
    *("arguments_paper", "f1", "only_provided", "invalid", "ms_p50", "published", "examples"),
    *("tokens", "steps", "seconds", "note"),
)
#: The suffix of the label of a planner without a grammar.
NO_GRAMMAR = ", grammar off"
#: Number of questions in a batch; the batches of Table 1 have one question, to time each plan.
BATCH_SIZE = 16
#: Number of networks with random weights.
RANDOM_COUNT = 3
#: Limit of a plan's tokens for models whose plans may not end; the longest annotated plan has 112.
LOOP_TOKENS = 128
UNCONSTRAINED: Mapping[str, Any] = {"constrained": False, "tokens": LOOP_TOKENS}  # no grammar
#: The paper's best mixture, which the first row of Table 2 uses: the share of the generic
#: instructions, and the number of tasks for each query, planning included.
BEST_SHARE, BEST_TASKS = 1.0, 4
#: A result's ``fallback`` contains this text if the planner raised an error.
FAILED = "It failed"
#: The file of questions for a tool without training data (section 5.5), and their class. The first
#: question is from the paper.
NEW_TOOL_QUERIES, NEW_TOOL = Path(__file__).with_name("compatible.jsonl"), "compatible_products"
NO_INSTRUCTIONS = "no instructions were given (--instructions FOLDER)"
PAPER = published_tables("reaper")
NOTES = (
    "tools: share of plans with the right tool sequence; low, high: its 95 % interval (Wilson); "
    "arguments: share with the right arguments too; arguments_paper: this share of the plans with "
    "prod_search or shipment_status. Plans of the fallback and invalid plans count as wrong. "
    "only_provided: share of plans that name only provided tools if a needed tool is removed and "
    "the grammar is off.",
    "No test question took part in training or in the plan cases. The case planner has the row's "
    "plan cases and no reader; it plans with the plan parser, which was trained on all queries.",
    f"{NEW_TOOL}: questions for a tool that is in no training data; the class all excludes them.",
    "published: REAPER's Tables 1 to 3 (Joshi et al. 2024) for a Mistral-7B on other data and 600 "
    "other questions; the training data is in brackets. The published only_provided is 1 minus the "
    "share of plans that call the removed prod_qna.",
    "For each row of Tables 2 and 3 a planner is trained from the recipe's base, with fewer steps "
    "than the shipped planner. examples and tokens are the counts of the training set.",
)


@dataclass(frozen=True, slots=True)
class ReaperTrial:
    """The options of ``casewright bench reaper``; a stopped run continues from ``folder``.

    Raise ``InputError`` if a table does not exist, or the limit is too small.
    """

    tables: tuple[str, ...] = TABLES
    folder: Path = field(default_factory=lambda: cache_folder() / "bench-reaper")
    recipe: str = "reaper"
    steps: int | None = None  # training steps, instead of the recipe's
    planner: Path | None = None  # Table 1's planner, instead of the shipped planner
    instructions: Path | None = None
    limit: int = 100  # maximum number of questions of each set
    seed: int = 0

    def __post_init__(self) -> None:
        if wrong := [name for name in self.tables if name not in TABLES]:
            raise InputError(f"There is no table {wrong[0]!r}. Tables are: {', '.join(TABLES)}.")
        if self.limit < 1:
            raise InputError(f"--limit is {self.limit}. Give at least 1.")


class Row(NamedTuple):
    """A row of Table 2 or 3, for which a planner is trained."""

    table: str
    name: str
    slug: str  # the start of the name of the row's folders; a digest follows
    paper: Mapping[str, Any]  # the published figures
    data: DataSection | None  # the training data; ``None`` if it needs missing instructions


def measure_reaper(trial: ReaperTrial) -> Report:
    """Measure the shipped planners; train and measure a planner for each row of Tables 2 and 3."""
    recipe = Recipe.read(find_recipe(trial.recipe))
    domain_name = recipe.data.domain
    if domain_name is None or recipe.data.queries is not None:
        raise InputError(
            f"{trial.recipe}: only a domain has test queries. Set data.domain without data.queries."
        )
    if trial.steps is not None:
        section = recipe.training.model_copy(update={"steps": trial.steps, "epochs": None})
        recipe = recipe.model_copy(update={"training": section})
    tested = load_domain(domain_name)
    test_items = items_of(tested.held_out_queries()[: trial.limit], tested.toolbox)
    rows = [r for r in trained_rows(recipe.data, trial.instructions) if r.table in trial.tables]
    lines = list(_first_table(trial, tested, test_items)) if FIRST in trial.tables else []
    with show_progress("Training and measuring", len(rows), "rows") as advance:
        for row in rows:
            note(f"Table {row.table}: {row.name}.")
            lines += _row_lines(row, trial, recipe, tested, test_items)
            advance(1)
    settings = {
        "domain": tested.domain.name,
        "tables": list(trial.tables),
        "recipe": recipe.model_dump(mode="json", exclude_none=True, exclude={"data"}),
        "steps": recipe.training.steps,
        "plan_cases_in_a_prompt": recipe.data.tevo.shots,
        "frozen_questions": len(test_items),
        "instructions": trial.instructions is not None,
        "seed": trial.seed,
    }
    draw = partial(draw_lines, lines=lines)
    titles = {name: f"Table {name}" for name in TABLES}
    return Report("reaper", settings, _figures(lines), lines, NOTES, draw, titles, _used_columns)


def trained_rows(data: DataSection, instructions: Path | None) -> list[Row]:
    """Return the rows of Tables 2 and 3; each further row of Table 2 leaves out one more part.

    ``instructions`` is a folder of generic instructions; raise ``InputError`` if it has none.
    """
    sources = _sources(instructions)

    def row(
        table: str, name: str, slug: str, paper: Mapping[str, Any], *, instructed: bool, **mix: Any
    ) -> Row:
        """Return a row with the ``mixture`` of ``mix``; ``instructed`` rows need instructions."""
        section = mixture(data, sources, **mix) if sources or not instructed else None
        return Row(table, name, slug, paper, section)

    rows = [row(SECOND, "all parts", "all-parts", PAPER["table_1"]["reaper"], instructed=False)]
    flags: dict[str, bool] = {}  # the flags of ``mixture`` that are false
    omissions = "no"
    parts = (("evolved", "evolve"), ("sampled", "dqs"), ("tools_evolved", "tevo"))
    for (part, abbreviation), (name, paper) in zip(parts, PAPER["table_2"].items(), strict=True):
        flags[part] = False
        omissions += f"-{abbreviation}"
        # Without instructions, the row without Evolve would be the same as the first row.
        rows.append(row(SECOND, name, omissions, paper, instructed=part == "evolved", **flags))
    for key, paper in PAPER["table_3"].items():
        share_text, tasks_text = key.split()
        share, tasks = float(share_text), int(tasks_text)
        is_best = (share, tasks) == (BEST_SHARE, BEST_TASKS)
        slug = "all-parts" if is_best else f"ift-{share:g}-tasks-{tasks}"
        name = f"{share:.0%} of the instructions, {tasks} tasks"
        rows.append(row(THIRD, name, slug, paper, instructed=share > 0, share=share, tasks=tasks))
    return rows


def _sources(folder: Path | None) -> tuple[InstructionSource, ...]:
    if folder is None:
        return ()
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in files if file.suffix in BUILDERS]
    if not files:
        raise InputError(
            f"--instructions {folder} has no file of generic instructions. Give a folder with "
            f"files that end in {', '.join(sorted(BUILDERS))}."
        )
    return tuple(InstructionSource(path=str(file)) for file in files)


def mixture(
    data: DataSection,
    sources: tuple[InstructionSource, ...],
    *,
    share: float = BEST_SHARE,
    tasks: int = BEST_TASKS,
    evolved: bool = True,
    sampled: bool = True,
    tools_evolved: bool = True,
) -> DataSection:
    """Return a recipe's section ``data`` with this mixture; each false flag leaves out a part.

    Args:
        share: Share of the generic instructions.
        tasks: Number of tasks per query, planning included.
        evolved: Whether some instructions get constraints.
        sampled: Whether the queries are sampled by the recipe's method, and not at random.
        tools_evolved: Whether the tools in prompts vary, with other names and descriptions.
    """
    instructions: dict[str, Any] = {"sources": sources, "share": share if sources else 0.0}
    changes: dict[str, dict[str, Any]] = {
        "instructions": instructions if evolved else {**instructions, "evolved": 0.0},
        "ttg": {"tasks_per_query": tasks},
        "sampling": {} if sampled else {"method": "random"},
        "tevo": {"enabled": tools_evolved},
    }
    sections = {n: getattr(data, n).model_copy(update=values) for n, values in changes.items()}
    return data.model_copy(update=sections)


def _row_lines(
    row: Row,
    trial: ReaperTrial,
    recipe: Recipe,
    tested: TestedDomain,
    test_items: Sequence[EvaluationItem],
) -> Iterator[Line]:
    """Yield the lines of a row's planner and of its controls; train the planner if necessary."""
    from casewright.finetune.training.train import train
    from casewright.planner.language_model import load_language_model

    labels = {"table": row.table, "row": row.name}
    if row.data is None:
        yield _line(**labels, planner=TRAINED, note=NO_INSTRUCTIONS)
        return
    inputs = _training_inputs(tested)
    identity = {
        "queries": queries_hash(inputs.queries),
        "toolbox": inputs.toolbox.fingerprint(),
        "prompt": prompt_hash(),
        "data": row.data.model_dump(mode="json"),
        "recipe": recipe.model_dump(mode="json", exclude={"data"}),
    }
    text = json.dumps(identity, sort_keys=True, default=str)
    name = f"{row.slug}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    set_folder, output = trial.folder / "sets" / name, trial.folder / "planners" / name
    if not (set_folder / MANIFEST).is_file():
        write_training_set(make_training_set(row.data, inputs, tested.encoder), set_folder)
    result = train(recipe.model, recipe.lora, recipe.training, set_folder, output, resume=True)
    metrics = result.card["metrics"]
    training_cells = {
        "examples": metrics["examples_training"],
        "tokens": metrics["tokens_training"],
        "steps": metrics["steps"],
        # The card of a resumed training has only the seconds since it was resumed.
        "seconds": None if metrics["resumed_after_steps"] else metrics["seconds_training"],
        "note": None if row.table == THIRD or row.data.instructions.sources else NO_INSTRUCTIONS,
    }
    model = load_language_model(output)
    # The plan cases are the queries of the training set.
    cases = choose_queries(inputs.queries, row.data.sampling, tested.encoder, row.data.seed)
    with plan_store(cases, tested.uncached_encoder) as store:
        example_count = row.data.tevo.shots
        planner_of = partial(model_planner, model, store, examples=example_count, batch=BATCH_SIZE)
        planners: dict[str, Planner] = {
            TRAINED: planner_of(),
            TRAINED + NO_GRAMMAR: planner_of(**UNCONSTRAINED),
            CASE_PLANNER: CasePlanner(store),
        }
        for line in planner_lines(test_items, planners, trial.seed):
            if line["class"] == "all":
                if line["planner"] == TRAINED:
                    line |= training_cells | _published_cell(row.paper, line)
                yield {**line, **labels}


def _training_inputs(tested: TestedDomain) -> TrainingInputs:
    """Return the inputs of training sets, without the held-out test queries."""
    domain, toolbox = tested.domain, tested.toolbox
    test_questions = [query.query for query in tested.held_out_queries()]
    pool = query_pool(domain.queries(), toolbox, test_questions).queries
    # items_of gives a class to queries without a class.
    queries = [item.query for item in items_of(pool, toolbox)]
    tool_pools = read_pools(domain.tool_pools, toolbox) if domain.tool_pools else {}
    return TrainingInputs(queries, toolbox, tool_pools, measuring=test_questions)


def _first_table(
    trial: ReaperTrial, tested: TestedDomain, test_items: Sequence[EvaluationItem]
) -> Iterator[Line]:
    """Yield the lines of Table 1: the shipped planner, its base, and controls."""
    from casewright.planner.language_model import load_language_model

    folder = trial.planner if trial.planner is not None else adapter_folder()
    example_count = adapter_example_count(folder) if has_adapter(folder) else EXAMPLE_COUNT
    source, queries = find_source(folder, None), tested.domain.queries()
    paper: Mapping[str, Any] = PAPER["table_1"]
    new_tool_items = items_of(read_annotated(NEW_TOOL_QUERIES), tested.toolbox)

    def lines(name: str, planners: Mapping[str, Planner], paper_row: str = "") -> Iterator[Line]:
        new_lines = planner_lines(new_tool_items, planners, trial.seed)
        new_lines = (line for line in new_lines if line["class"] == NEW_TOOL)
        for line in (*new_lines, *planner_lines(test_items, planners, trial.seed)):
            cell = _published_cell(paper.get(paper_row, {}), line)
            yield {**line, "table": FIRST, "row": name, **cell}

    with plan_store(queries, tested.uncached_encoder) as store:
        # Batches of one, so that each plan is timed.
        planner_of = partial(model_planner, store=store, examples=example_count, batch=1)
        tuned = load_language_model(folder)
        models = [(SHIPPED, tuned, "reaper")]
        if source.adapter is not None:
            models.append((BASE, load_language_model(source.base), "untuned"))
        for name, model, paper_row in models:
            planners = {name: planner_of(model)}
            planners[name + NO_GRAMMAR] = planner_of(model, **UNCONSTRAINED)
            yield from lines(name, planners, paper_row)
        if source.adapter is None:
            reason = "the planner is not an adapter and names no base"
            yield _line(table=FIRST, row=BASE, planner=BASE, note=reason)
        for seed in range(trial.seed, trial.seed + RANDOM_COUNT):
            control = planner_of(with_random_weights(tuned, seed), tokens=LOOP_TOKENS)
            yield from lines(f"{RANDOM}, seed {seed}", {RANDOM: control})
        if (reader := tested.domain.open_reader()) is not None:
            name = "case planner with its reader"
            yield from lines(name, {name: CasePlanner(store, reader)})
        yield from lines(CASE_PLANNER, {CASE_PLANNER: CasePlanner(store)})
        if find_spec("sklearn") is not None:
            make = partial(make_planner, CLASSIFIERS, store, encoder=tested.uncached_encoder)
            yield from lines(CLASSIFIERS, {CLASSIFIERS: make(queries=lambda: queries)}, "ensemble")


def with_random_weights(model: LanguageModel, seed: int) -> LanguageModel:
    """Return a model with the same architecture and tokenizer, and random weights."""
    import torch

    from casewright.planner.language_model import LanguageModel

    transformers: Any = import_module("transformers")
    # The CPU draws the numbers, so that they do not depend on the model's device.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = transformers.AutoModelForCausalLM.from_config(
            deepcopy(model.network.config),
            dtype=model.network.dtype,
            attn_implementation=model.network.config._attn_implementation,
        )
    return LanguageModel(f"random weights, seed {seed}", network.to(model.device), model.tokenizer)


def planner_lines(
    items: Sequence[EvaluationItem], planners: Mapping[str, Planner], seed: int
) -> Iterator[Line]:
    """Yield each planner's lines: one for each class, and one for all classes.

    For ``only_provided``, planners whose labels end in ``NO_GRAMMAR`` also plan without a needed
    tool. Fallback plans and invalid plans count as wrong. ``InputError`` if a planner fails.
    """
    without_grammar = {n: planner for n, planner in planners.items() if n.endswith(NO_GRAMMAR)}
    evaluation = evaluate(items, planners, removal=without_grammar, seed=seed)
    for label, outcomes in evaluation.outcomes.items():
        errors = [o.error for o in outcomes if o.error]
        errors += [o.result.fallback for o in outcomes if o.result and FAILED in o.result.fallback]
        if errors:
            raise InputError(
                f"{label} failed on {len(errors)} of {len(outcomes)} questions, first with: "
                f"{errors[0]} Run the same command again."
            )
        wrong: dict[str, Any] = {"predicted": "", "right_tools": False, "right_arguments": False}
        verdicts = [o.verdict if o.is_own_plan else replace(o.verdict, **wrong) for o in outcomes]
        *classes, overall = ({**as_row(score)} for score in score_classes(verdicts))
        low, high = wilson(sum(v.right_tools for v in verdicts), len(verdicts))
        overall |= {"low": round(low, 4), "high": round(high, 4)}
        overall["invalid"] = round(sum(not o.is_own_plan for o in outcomes) / len(outcomes), 4)
        for name in ("only_provided", "ms_p50"):
            overall[name] = evaluation.figures[label][name].value
        is_model = isinstance(planners[label], ModelPlanner)
        grammar = ("off" if label in without_grammar else "on") if is_model else None
        labels = {"planner": label.removesuffix(NO_GRAMMAR), "grammar": grammar}
        for score in (*classes, overall):
            yield _line(**labels, **{n: cell for n, cell in score.items() if n in COLUMNS})


def _line(**cells: Any) -> Line:
    """Return a line with all columns; missing cells are ``None``."""
    return {**dict.fromkeys(COLUMNS), "class": "all", **cells}


def _published_cell(paper: Mapping[str, Any], line: Line) -> Line:
    """Return the cell ``published``; if the grammar is off, it shows only ``only_provided``."""
    grammar_is_off = line["grammar"] == "off"
    if line["class"] != "all":
        figures = paper.get("classes", {}).get(line["class"])
        if figures is None or grammar_is_off:
            return {}
        text = "precision {:g}, recall {:g}, f1 {:g} ({})".format(*figures)
        return {"published": text}
    names = ("only_provided",) if grammar_is_off else ("tools", "arguments_paper", "ms_p50")
    text = ", ".join(f"{name} {paper[name]:g}" for name in names if name in paper)
    trained = f" ({paper['trained']})" if "trained" in paper else ""
    return {"published": f"{text}{trained}" if text else None}


def _used_columns(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a table without the columns that are empty in all of them."""
    names = [n for n in COLUMNS[1:] if any(line[n] is not None for line in lines)]
    return [{name: line[name] for name in names} for line in lines]


def _overall_lines(lines: Sequence[Line]) -> Iterator[tuple[str, Line]]:
    """Yield a figure's name and the line for all classes; omit planners whose grammar is off."""
    for line in lines:
        if line["class"] == "all" and line["grammar"] != "off" and line["tools"] is not None:
            row = _figure_name(line["row"])
            yield row if line["table"] == FIRST else f"table_{line['table']}_{row}", line


def _figures(lines: Sequence[Line]) -> dict[str, float]:
    """Return the figures of the lines for all classes, with a gain for each trained planner.

    A gain is the tool accuracy minus the case planner's tool accuracy with the same plan cases.
    """
    figures: dict[str, float] = {}
    for name, line in _overall_lines(lines):
        if line["table"] == FIRST:
            names = ("tools", "arguments", "arguments_paper", "ms_p50")
            figures |= {f"{n}_{name}": line[n] for n in names if line[n] is not None}
        elif line["planner"] == TRAINED:
            figures |= {f"tools_{name}": line["tools"], f"arguments_{name}": line["arguments"]}
        else:
            gain = round(figures[f"tools_{name}"] - line["tools"], 4)
            figures[f"tools_{name}_over_{_figure_name(line['planner'])}"] = gain
    for line in lines:
        if line["table"] == FIRST and line["only_provided"] is not None:
            figures[f"only_provided_{_figure_name(line['row'])}"] = line["only_provided"]
    return figures


def _figure_name(text: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def draw_lines(axes: Any, lines: Sequence[Line]) -> None:
    """Draw the tool accuracy of trained and case planners; if none is trained, draw Table 1."""
    rows: dict[str, dict[str, float]] = {}
    for name, line in _overall_lines(lines):
        rows.setdefault(name, {})[line["planner"]] = line["tools"]
    trained = {name: row for name, row in rows.items() if TRAINED in row}
    bars = trained or rows
    axes.barh(list(bars), [row.get(TRAINED, next(iter(row.values()))) for row in bars.values()])
    points = [(row[CASE_PLANNER], name) for name, row in trained.items() if CASE_PLANNER in row]
    if points:
        axes.plot(*zip(*points, strict=True), "o", color="black", label=CASE_PLANNER)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of right tool sequences")
    axes.set_title("REAPER's tables with a small model")
    if trained:
        axes.legend(loc="lower right")
