"""Factories of Casewright's own planners; the package's entry points refer to them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from casewright.planner.case_planner import CasePlanner
from casewright.planner.ensemble import MAX_PARSER_CANDIDATES, EnsemblePlanner
from casewright.planner.history import HistoryReuse
from casewright.planner.language_model import LanguageModel
from casewright.planner.model_planner import ModelPlanner
from casewright.planner.named import (
    AGENT,
    ENSEMBLE,
    LOCAL,
    ModelSettings,
    NamedPlanner,
    PlannerParts,
)
from casewright.planner.parser.weights import FOLDER as PARSER_FOLDER
from casewright.planner.parser_planner import ParserPlanner, ParserReuse
from casewright.planner.plan_cases import EXAMPLE_COUNT
from casewright.planner.request import Planner
from casewright.planner.reuse import PlanSource
from casewright.planner.shipped import (
    SHIPPED,
    adapter_example_count,
    adapter_folder,
    has_adapter,
    is_runnable,
    load_shipped,
)
from casewright.stores import CaseStore


def _case(parts: PlannerParts) -> Planner:
    if not (parts.reader and is_runnable()):
        return CasePlanner(parts.plan_cases, parts.reader)
    # A request may add tools on which the reader was not trained. The ensemble reads their
    # descriptions. The best plan with such a tool is often not among the parser's first three.
    untrained = _new_ensemble(ParserReuse(store=None), plan_cases=None, parser_candidates=6)
    return CasePlanner(parts.plan_cases, parts.reader, untrained=untrained)


def _parser(parts: PlannerParts) -> Planner:
    _, _, folder = parts.name.partition(":")
    return ParserPlanner(parts.plan_cases, Path(folder or PARSER_FOLDER))


def _ensemble(parts: PlannerParts) -> Planner:
    _, _, folder = parts.name.partition(":")
    parser = HistoryReuse(ParserReuse(parts.plan_cases, Path(folder or PARSER_FOLDER)))
    return _new_ensemble(parser, parts.plan_cases, parts.settings, parts.name)


def _new_ensemble(
    parser: PlanSource,
    plan_cases: CaseStore | None,
    settings: ModelSettings | None = None,
    name: str = ENSEMBLE,
    parser_candidates: int = MAX_PARSER_CANDIDATES,
) -> EnsemblePlanner:
    def load() -> ModelPlanner:
        model = local_model(SHIPPED, settings or ModelSettings())
        return ModelPlanner(model, plan_cases=plan_cases, examples=example_count(SHIPPED))

    return EnsemblePlanner(parser, load, name=name, parser_candidates=parser_candidates)


def _model_planner(parts: PlannerParts) -> Planner:
    fallback = CasePlanner(parts.plan_cases, parts.reader)
    examples = parts.settings.examples
    return ModelPlanner(
        local_model(parts.name, parts.settings),
        fallback=fallback,
        draft=fallback,
        plan_cases=parts.plan_cases,
        examples=example_count(parts.name) if examples is None else examples,
        constrained=parts.settings.constrained,
    )


def example_count(name: str) -> int:
    """Return the number of plan cases in prompts for a planner, a local model or a chat model.

    For a tuned model, it is the number in the training prompts.
    """
    if name == SHIPPED:
        return adapter_example_count()
    folder = Path(name.removeprefix(LOCAL))
    is_tuned = name.startswith(LOCAL) and has_adapter(folder)
    return adapter_example_count(folder) if is_tuned else EXAMPLE_COUNT


def local_model(name: str, settings: ModelSettings) -> LanguageModel:
    """Return the language model of the planner with this name; see ``named.local_model``."""
    if name == SHIPPED:
        return _load_shipped(adapter_folder(), settings.device, settings.dtype, SHIPPED)
    folder = name.removeprefix(AGENT).removeprefix(LOCAL)
    if settings.adapter is None and has_adapter(Path(folder)):
        return _load_shipped(Path(folder), settings.device, settings.dtype, folder)
    return _load(folder, settings.adapter, settings.device, settings.dtype)


# The arguments are the cache key, so agents and planners with or without a grammar share a model.
@lru_cache(maxsize=1)
def _load(name: str, adapter: str | None, device: str | None, dtype: str | None) -> LanguageModel:
    from casewright.planner.language_model import load_language_model

    return load_language_model(name, adapter=adapter, device=device, dtype=dtype)


_load_shipped = lru_cache(maxsize=1)(load_shipped)


#: Names of all model settings.
_SETTINGS = frozenset({"adapter", "device", "dtype", "examples", "constrained"})
CASE = NamedPlanner(_case, reads=True)
#: The packaged plan parser, or one that ``finetune adapt`` or ``finetune parser`` wrote.
PARSER = NamedPlanner(_parser, "FOLDER", bare=True)
#: Any causal language model, by its folder or name.
LOCAL_MODEL = NamedPlanner(_model_planner, "FOLDER", takes=_SETTINGS, reads=True, model=local_model)
#: The pretrained base of the packaged adapter.
BASE = NamedPlanner(_model_planner, takes=_SETTINGS, reads=True, model=local_model)
#: The packaged adapter.
ADAPTER = NamedPlanner(_model_planner, takes=_SETTINGS - {"adapter"}, reads=True, model=local_model)
#: The ensemble: the packaged adapter and a plan parser, by default the packaged parser. The adapter
#: is loaded when the parser is unsure for the first time.
TOGETHER = NamedPlanner(_ensemble, "FOLDER", bare=True, takes=frozenset({"device", "dtype"}))
