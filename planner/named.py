"""Planners by name: Casewright's planners, planners of other packages, and chat models.

Each entry point of the group ``casewright.planners`` names a ``NamedPlanner``; see ``extensions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import CasewrightError, InputError
from casewright.extensions import extension, extensions
from casewright.planner.parser.weights import is_parser
from casewright.planner.shipped import is_runnable

if TYPE_CHECKING:
    from casewright.planner.annotated import AnnotatedQuery
    from casewright.planner.language_model import LanguageModel
    from casewright.planner.reader import Reader
    from casewright.planner.request import Planner
    from casewright.stores import CaseStore, Encoder

#: Names of the case planner, the classifiers (a baseline), the plan parser, and the ensemble.
CASE_PLANNER, CLASSIFIERS, PARSER, ENSEMBLE = "case", "classifiers", "parser", "ensemble"
#: Prefix of the name of a planner with a local language model; the model's folder or name follows.
LOCAL = "local:"
#: Prefix of the name of a planner whose local language model writes one step at a time.
AGENT = "agent:"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Settings of a planner with a language model; all but ``examples`` are for local models.

    Attributes:
        adapter: Folder or name of a PEFT adapter.
        device: Device of the model; by default a GPU if there is one.
        dtype: Type of the weights; by default bfloat16 on a GPU, else float32.
        examples: Number of plan cases in the prompt; by default the planner's own number.
        constrained: True for decoding under the request's grammar.
    """

    adapter: str | None = None
    device: str | None = None
    dtype: str | None = None
    examples: int | None = None
    constrained: bool = True


@dataclass(frozen=True, slots=True)
class PlannerParts:
    """Arguments for the factories of planners; each factory uses the arguments that it needs.

    Attributes:
        name: The planner's name, including the part after the colon.
        reader: The domain's reader, if there is one and ``NamedPlanner.reads`` is true.
        queries: Function that returns the domain's annotated queries; by default ``list``, which
            returns none.
        encoder: Encoder of the queries; ``None`` for the packaged encoder.
        scope: The user's scope, for a planner that calls tools.
    """

    name: str
    plan_cases: CaseStore
    reader: Reader | None = None
    settings: ModelSettings = ModelSettings()
    queries: Callable[[], Sequence[AnnotatedQuery]] = list
    encoder: Encoder | None = None
    scope: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedPlanner:
    """Factory of planners, named by an entry point of the group ``casewright.planners``.

    Attributes:
        make: Makes the planner; raises ``InputError`` if its arguments are not sufficient.
        argument: Placeholder, such as ``FOLDER``, for what follows the planner's name and a colon;
            empty if nothing follows.
        bare: True if the planner's name may also stand alone, without a colon and an argument.
        takes: Names of the fields of ``ModelSettings`` that the planner uses. A planner that uses
            ``device`` has a language model in this process.
        reads: True if the planner uses the domain's reader (``PlannerParts.reader``).
        shared: True if the planner can serve several users: it calls no tools while it plans.
        model: Loads the language model of a planner with this name and these settings; raises
            ``InputError`` if it cannot. ``None`` if the planner has none, or loads it when needed.
    """

    make: Callable[[PlannerParts], Planner]
    argument: str = ""
    bare: bool = False
    takes: frozenset[str] = frozenset()
    reads: bool = False
    shared: bool = True
    model: Callable[[str, ModelSettings], LanguageModel] | None = None

    def settings(self, settings: ModelSettings) -> ModelSettings:
        """Return the settings; those that this planner does not use have their defaults."""
        return ModelSettings(**{name: getattr(settings, name) for name in self.takes})


def named_planner(name: str) -> NamedPlanner:
    """Return the factory of the planner with a name; for the errors see ``extension``."""
    planner_name, colon, argument = name.partition(":")
    if planner_name not in extensions("planner"):
        if colon:
            return CHAT
        usages = ", ".join(map(_usage, extensions("planner")))
        raise InputError(
            f"There is no planner {name!r}. Planners are: {usages}, or a chat model "
            "as provider:model, for example openai:gpt-4o-mini."
        )
    planner: NamedPlanner = extension("planner", planner_name)
    if not planner.argument:
        # With a colon, the name is the provider of a chat model.
        return CHAT if colon else planner
    if planner.bare and not colon:
        return planner
    # An argument that is declared as local:FOLDER must begin with ``local:``.
    prefix = planner.argument.rpartition(":")[0]
    if not argument.startswith(prefix) or not argument.removeprefix(prefix).strip(":"):
        raise InputError(f"{name!r} names no model. Write {_usage(planner_name)}.")
    return planner


def check_planner(name: str, settings: ModelSettings | None = None) -> None:
    """Raise ``InputError`` unless a planner of this name exists and takes these settings."""
    planner, model_settings = named_planner(name), settings or ModelSettings()
    local_option = f"--planner {LOCAL}FOLDER"
    for setting in fields(ModelSettings):
        if (
            setting.name in planner.takes
            or getattr(model_settings, setting.name) == setting.default
        ):
            continue
        flag = "--no-grammar" if setting.name == "constrained" else f"--{setting.name}"
        if setting.name == "examples":
            problem, usable_with = "has no prompt", "a language model"
        elif setting.name == "constrained":
            problem, usable_with = "has no grammar to switch off", local_option
        elif "device" in planner.takes:  # The packaged adapter, alone or in the ensemble.
            problem, usable_with = "is an adapter itself", f"{local_option}, or without --planner"
        else:
            problem, usable_with = "is no local model", local_option
        raise InputError(
            f"The planner {name!r} {problem}. Leave {flag} out; it goes with {usable_with}."
        )


def refuse_single_user_planner(name: str | None) -> None:
    """Raise ``InputError`` if a named planner calls tools as one user while it plans."""
    if name is not None and not named_planner(name).shared:
        raise InputError(
            f"The planner {name!r} calls tools for a single user while it plans, so it cannot "
            "serve several. Choose another planner."
        )


def has_local_model(name: str) -> bool:
    """Return True if ``local_model`` can load the language model of this planner."""
    return named_planner(name).model is not None


def has_whole_plan_model(name: str) -> bool:
    """Return True if this planner has a local model that writes a whole plan at once."""
    return "constrained" in named_planner(name).takes


def local_model(name: str, settings: ModelSettings) -> LanguageModel:
    """Return the language model of the planner with this name; the last loaded model is cached.

    Raises:
        InputError: The model does not exist or cannot be used.
        DependencyError: A package that the model needs, or its packaged base, is not installed.
    """
    model = named_planner(name).model
    if model is None:
        raise InputError(f"The planner {name!r} has no language model in this process.")
    return model(name, settings)


def planner_for_adapter(name: str | None, adapter: str | None) -> tuple[str | None, str | None]:
    """Return a planner's name and its adapter; choose a planner if only an adapter is given.

    The chosen planner's name contains the adapter, so the returned adapter is ``None``. For an
    adapted plan parser, the ensemble is chosen if the packaged adapter can run, or else the parser.
    """
    if adapter is None or name is not None:
        return name, adapter
    if not is_parser(Path(adapter)):
        return LOCAL + adapter, None
    return f"{ENSEMBLE if is_runnable() else PARSER}:{adapter}", None


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
    """Make the planner with this name; for the arguments see ``PlannerParts``.

    Raises:
        InputError: The planner or its model does not exist, or its training data is missing.
        DependencyError: A package that the planner needs is not installed.
    """
    model_settings = settings or ModelSettings()
    check_planner(name, model_settings)
    parts = PlannerParts(
        name, plan_cases, reader, model_settings, queries or list, encoder, dict(scope or {})
    )
    return named_planner(name).make(parts)


def _usage(name: str) -> str:
    try:
        argument = extension("planner", name).argument
    except CasewrightError:
        # The planner's package cannot be imported. ``make_planner`` raises the same error.
        argument = ""
    return f"{name}:{argument}" if argument else name


def _chat_planner(parts: PlannerParts) -> Planner:
    from casewright.planner.case_planner import CasePlanner
    from casewright.planner.chat_call import chat_model
    from casewright.planner.chat_planner import ChatPlanner
    from casewright.planner.plan_cases import EXAMPLE_COUNT

    examples = parts.settings.examples
    return ChatPlanner(
        chat_model(parts.name),
        fallback=CasePlanner(parts.plan_cases, parts.reader),
        plan_cases=parts.plan_cases,
        examples=EXAMPLE_COUNT if examples is None else examples,
    )


#: Factory of planners with a LangChain chat model, for names ``provider:model`` (no entry point).
CHAT = NamedPlanner(_chat_planner, takes=frozenset({"examples"}), reads=True)
