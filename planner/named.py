"""Planners by name: the case planner, a language model, or what these are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner.language_model.smollm2 import NAME as SMOLLM2
from casewright.planner.shipped import (
    SHIPPED,
    is_shipped,
    load_shipped,
    shipped_examples,
    shipped_planner,
)

if TYPE_CHECKING:
    from casewright.planner import AnnotatedQuery, Planner, Reader
    from casewright.planner.language_model import LanguageModel
    from casewright.stores import CaseStore, Encoder

#: With the domain's reader where it has one; without it in any case.
CASE_PLANNER, SHAPE_PLANNER = "case", "shape"
#: The ensemble of classifiers with a separate argument step.
CLASSIFIERS = "classifiers"
#: The trained plan parser, for which the toolbox is an input.
PARSER = "parser"
#: Before the folder or the name of a causal language model that runs in this process.
LOCAL = "local:"
#: Before the name of a local model that is asked for one step at a time.
AGENT = "agent:"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a planner with a language model is given beside its name.

    Attributes:
        adapter: A PEFT adapter for a local model: folder or name.
        device: Where a local model runs; a GPU where there is one.
        dtype: In which numbers; bfloat16 on a GPU, float32 elsewhere.
        examples: Plan cases in the prompt; the planner's own number by default.
        constrained: Whether a local model writes under the request's grammar.
    """

    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    examples: int | None = None
    constrained: bool = True


def check_planner(name: str, settings: ModelSettings | None = None) -> None:
    """Raise ``InputError`` where no planner has this name, before anything is opened."""
    check_name(
        "planner",
        name,
        *(CASE_PLANNER, SHAPE_PLANNER, PARSER, CLASSIFIERS, SHIPPED, SMOLLM2),
        f"{LOCAL}FOLDER for a local model",
        f"{AGENT}{LOCAL}FOLDER for one that is asked step by step",
    )
    given = settings or ModelSettings()
    if name.startswith(AGENT) and not name.startswith(AGENT + LOCAL):
        raise InputError(
            f"{name!r} is no agent. Write {AGENT}{LOCAL} and the folder of a local model."
        )
    if name in (LOCAL, AGENT + LOCAL):
        raise InputError(
            f"{name!r} names no model. Write {name} and a folder or a Hugging Face name."
        )
    if not is_local(name) and (given.adapter or given.device or given.dtype):
        raise InputError(
            f"The planner {name!r} is no local model. Leave --adapter, --device and --dtype out; "
            f"they go with --planner {LOCAL}FOLDER."
        )
    if name == SHIPPED and given.adapter:
        raise InputError(
            f"The planner {name!r} is an adapter itself. Leave --adapter out, or give it without "
            f"--planner; it goes with --planner {SMOLLM2} or {LOCAL}FOLDER."
        )
    if not writes_locally(name) and not given.constrained:
        raise InputError(
            f"The planner {name!r} has no grammar that can be left off. Leave --no-grammar out; it "
            f"goes with --planner {LOCAL}FOLDER."
        )
    if ":" not in name and not is_local(name) and given.examples is not None:
        raise InputError(
            f"The planner {name!r} has no prompt. Leave --examples out; it goes with a language "
            "model."
        )


def check_shared(name: str | None) -> None:
    """Raise ``InputError`` where a planner of this name cannot plan for several askers.

    No name is the domain's own planner, which can.
    """
    if name is not None and name.startswith(AGENT):
        raise InputError(
            f"The planner {name!r} calls tools while it plans, for one asker, and here there are "
            "many. Choose another planner."
        )


def check_name(kind: str, name: str, *own: str) -> None:
    """Raise ``InputError`` where a name is none of our own, nor a chat model's."""
    if name not in own and ":" not in name:
        raise InputError(
            f"There is no {kind} {name!r}. {kind.capitalize()}s are: {', '.join(own)}, or a chat "
            "model as provider:model, for example openai:gpt-4o-mini."
        )


def is_local(name: str) -> bool:
    """Say whether a planner of this name has a language model in this process."""
    return writes_locally(name.removeprefix(AGENT))


def writes_locally(name: str) -> bool:
    """Say whether such a model writes the whole plan in one call."""
    return name in (SHIPPED, SMOLLM2) or name.startswith(LOCAL)


def local_model(name: str, settings: ModelSettings) -> LanguageModel:
    """Load the language model of a planner's name; the last one is kept.

    Raises:
        InputError: There is no such model, or it cannot be used.
        DependencyError: A package that it needs is not installed, or the packaged base is not.
    """
    if name == SHIPPED:
        return _trained(shipped_planner(), settings.device, settings.dtype, SHIPPED)
    folder = name.removeprefix(AGENT).removeprefix(LOCAL)
    if settings.adapter is None and is_shipped(Path(folder)):
        return _trained(Path(folder), settings.device, settings.dtype, folder)
    return _loaded(folder, settings.adapter, settings.device, settings.dtype)


# Not by the settings: with and without grammar, and as an agent, it is one model.
@lru_cache(maxsize=1)
def _loaded(name: str, adapter: str | None, device: str | None, dtype: str | None) -> LanguageModel:
    from casewright.planner.language_model import load_language_model

    return load_language_model(name, adapter=adapter, device=device, dtype=dtype)


@lru_cache(maxsize=1)
def _trained(folder: Path, device: str | None, dtype: str | None, title: str) -> LanguageModel:
    return load_shipped(folder, device=device, dtype=dtype, title=title)


def shown_examples(name: str) -> int:
    """Return how many plan cases a model is shown: where it was trained here, as many as then.

    Args:
        name: A planner's, of a local model or of a chat model.
    """
    from casewright.planner.plan_cases import EXAMPLES

    if name == SHIPPED:
        return shipped_examples()
    folder = Path(name.removeprefix(LOCAL))
    return shipped_examples(folder) if name.startswith(LOCAL) and is_shipped(folder) else EXAMPLES


def of_adapter(name: str | None, adapter: str | None) -> tuple[str | None, str | None]:
    """Return planner and adapter; an adapter without a planner is one, since it names its base."""
    if adapter is not None and name is None:
        return LOCAL + adapter, None
    return name, adapter


def make_planner(
    name: str,
    plan_cases: CaseStore,
    reader: Reader | None = None,
    settings: ModelSettings | None = None,
    *,
    queries: Callable[[], Sequence[AnnotatedQuery]] | None = None,
    encoder: Encoder | None = None,
    scope: Mapping[str, str] | None = None,
) -> Planner:
    """Return the case planner, one with a language model that falls back to it, or a baseline.

    Args:
        name: The planner's.
        plan_cases: Of the domain.
        reader: The domain's, if it has one.
        settings: Of a language model.
        queries: Reads the annotated queries that classifiers learn from.
        encoder: Theirs; the packaged encoder by default.
        scope: Who asks, for an agent, which calls tools.

    Raises:
        InputError: There is no such planner or model, or classifiers have nothing to learn from.
        DependencyError: A package that the planner needs is not installed.
    """
    given = settings or ModelSettings()
    check_planner(name, given)
    if name == CLASSIFIERS:
        return _classifiers(queries, encoder)
    if name == PARSER:
        from casewright.planner import CasePlanner
        from casewright.planner.parser_planner import ParserPlanner

        return ParserPlanner(plan_cases, follow_ups=CasePlanner(plan_cases))
    from casewright.planner import CasePlanner

    case_planner = CasePlanner(plan_cases, None if name == SHAPE_PLANNER else reader)
    if name in (CASE_PLANNER, SHAPE_PLANNER):
        return case_planner
    if name.startswith(AGENT):
        return _agent(name, given, scope, case_planner, plan_cases)
    return _writer(name, given, case_planner, plan_cases)


def _writer(name: str, given: ModelSettings, fallback: Planner, plan_cases: CaseStore) -> Planner:
    """Return a planner whose plans a local model or a chat model writes in one call."""
    from casewright.planner import ChatPlanner, ModelPlanner, chat_model

    shown = shown_examples(name) if given.examples is None else given.examples
    if writes_locally(name):
        return ModelPlanner(
            local_model(name, given),
            fallback=fallback,
            draft=fallback,
            plan_cases=plan_cases,
            examples=shown,
            constrained=given.constrained,
        )
    return ChatPlanner(chat_model(name), fallback=fallback, plan_cases=plan_cases, examples=shown)


def _agent(
    name: str,
    given: ModelSettings,
    scope: Mapping[str, str] | None,
    fallback: Planner,
    plan_cases: CaseStore,
) -> Planner:
    from casewright.graph.step_agent import AgentPlanner

    return AgentPlanner(
        local_model(name, given),
        scope=scope,
        fallback=fallback,
        plan_cases=plan_cases,
        examples=given.examples or 0,
    )


def _classifiers(
    queries: Callable[[], Sequence[AnnotatedQuery]] | None, encoder: Encoder | None
) -> Planner:
    known = queries() if queries is not None else ()
    if not known:
        raise InputError(
            f"The planner {CLASSIFIERS!r} learns from annotated queries, and there are none here. "
            "Choose a domain that has some, such as shopping, or another planner."
        )
    from casewright.finetune.baselines.classifier_cache import cached_classifiers
    from casewright.stores import default_encoder

    return cached_classifiers(known, encoder or default_encoder())
