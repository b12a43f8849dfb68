"""Planners by name: the case planner, a local language model, or a chat model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from casewright.errors import InputError

if TYPE_CHECKING:
    from casewright.planner import Planner, Reader
    from casewright.planner.language_model import LanguageModel
    from casewright.stores import CaseStore

#: With the domain's reader where it has one; without it in any case.
CASE_PLANNER, SHAPE_PLANNER = "case", "shape"
#: Before the folder or the name of a causal language model that runs in this process.
LOCAL = "local:"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a planner with a language model is given beside its name.

    Attributes:
        adapter: A PEFT adapter for a local model: folder or name.
        device: Where a local model runs; a GPU where there is one.
        dtype: In which numbers; bfloat16 on a GPU, float32 elsewhere.
        examples: Plan cases in the prompt; the planner's own number by default.
    """

    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    examples: int | None = None


def check_planner(name: str, settings: ModelSettings | None = None) -> None:
    """Raise ``InputError`` where no planner has this name, before anything is opened."""
    check_name("planner", name, CASE_PLANNER, SHAPE_PLANNER, f"{LOCAL}FOLDER for a local model")
    given = settings or ModelSettings()
    if name == LOCAL:
        raise InputError(
            f"{name!r} names no model. Write local: and a folder or a Hugging Face name."
        )
    if not name.startswith(LOCAL) and (given.adapter or given.device or given.dtype):
        raise InputError(
            f"The planner {name!r} is no local model. Leave --adapter, --device and --dtype out; "
            "they go with --planner local:FOLDER."
        )
    if ":" not in name and given.examples is not None:
        raise InputError(
            f"The planner {name!r} has no prompt. Leave --examples out; it goes with a language "
            "model."
        )


def check_name(kind: str, name: str, *own: str) -> None:
    """Raise ``InputError`` where a name is none of our own, nor a chat model's."""
    if name not in own and ":" not in name:
        raise InputError(
            f"There is no {kind} {name!r}. {kind.capitalize()}s are: {', '.join(own)}, or a chat "
            "model as provider:model, for example openai:gpt-4o-mini."
        )


@lru_cache(maxsize=1)
def local_model(name: str, settings: ModelSettings) -> LanguageModel:
    """Load the language model of a planner's name; the last one is kept.

    Raises:
        InputError: There is no such model, or it cannot be used.
    """
    from casewright.planner.language_model import load_language_model

    return load_language_model(
        name.removeprefix(LOCAL),
        adapter=settings.adapter,
        device=settings.device,
        dtype=settings.dtype,
    )


def make_planner(
    name: str,
    plan_cases: CaseStore,
    reader: Reader | None = None,
    settings: ModelSettings | None = None,
) -> Planner:
    """Return the case planner, or one with a language model that falls back to it.

    Raises:
        InputError: There is no such planner or model.
    """
    from casewright.planner import CasePlanner, ChatPlanner, ModelPlanner, chat_model
    from casewright.planner.plan_cases import EXAMPLES

    given = settings or ModelSettings()
    check_planner(name, given)
    case_planner = CasePlanner(plan_cases, None if name == SHAPE_PLANNER else reader)
    if name in (CASE_PLANNER, SHAPE_PLANNER):
        return case_planner
    shown = EXAMPLES if given.examples is None else given.examples
    if name.startswith(LOCAL):
        model = local_model(name, given)
        return ModelPlanner(model, fallback=case_planner, plan_cases=plan_cases, examples=shown)
    return ChatPlanner(
        chat_model(name), fallback=case_planner, plan_cases=plan_cases, examples=shown
    )
