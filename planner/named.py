"""Planners by name: ours, those of other packages, and chat models.

An entry point of the group ``casewright.planners`` names a ``NamedPlanner``; see ``extensions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import CasewrightError, InputError
from casewright.extensions import extension, extensions
from casewright.planner.parser.weights import is_parser

if TYPE_CHECKING:
    from casewright.planner.annotated import AnnotatedQuery
    from casewright.planner.language_model import LanguageModel
    from casewright.planner.reader import Reader
    from casewright.planner.request import Planner
    from casewright.stores import CaseStore, Encoder

#: The case planner, with the domain's reader where it has one.
CASE_PLANNER = "case"
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
    """Settings of a planner with a language model.

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


@dataclass(frozen=True, slots=True)
class PlannerParts:
    """Parts that a planner may be made of.

    Attributes:
        name: The planner's, with what stands after its colon.
        plan_cases: Of the domain.
        reader: The domain's, where it has one and the planner reads.
        settings: Those that the planner takes.
        queries: Reads the annotated queries of the domain.
        encoder: Theirs; ``None`` for the packaged encoder.
        scope: Who asks, for a planner that calls tools.
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
    """Maker of planners, which an entry point of the group ``casewright.planners`` names.

    Attributes:
        make: Makes the planner; raises ``InputError`` where its parts do not do.
        argument: What stands after the name and a colon, for people; empty where nothing may.
        bare: Whether the name may also stand alone.
        takes: Names of the fields of ``ModelSettings`` that it takes; one that takes ``device``
            has a language model in this process.
        reads: Whether it uses the domain's reader.
        shared: Whether it can plan for several askers, and calls no tools.
        model: Loads its language model, given name and settings, if it has one in this process;
            raises ``InputError`` where there is none.
    """

    make: Callable[[PlannerParts], Planner]
    argument: str = ""
    bare: bool = False
    takes: frozenset[str] = frozenset()
    reads: bool = False
    shared: bool = True
    model: Callable[[str, ModelSettings], LanguageModel] | None = None

    def settings(self, given: ModelSettings) -> ModelSettings:
        """Return those of the settings that this planner takes."""
        taken = {name: getattr(given, name) for name in self.takes}
        return ModelSettings(**taken)


def named_planner(name: str) -> NamedPlanner:
    """Return what makes the planner of a name.

    Raises:
        InputError: No planner has this name.
        DependencyError: The package that has it cannot be imported.
    """
    head, colon, argument = name.partition(":")
    if head not in extensions("planner"):
        if colon:
            return CHAT
        known = ", ".join(map(_form, extensions("planner")))
        raise InputError(
            f"There is no planner {name!r}. Planners are: {known}, or a chat model "
            "as provider:model, for example openai:gpt-4o-mini."
        )
    planner: NamedPlanner = extension("planner", head)
    if not planner.argument:
        return CHAT if colon else planner
    if planner.bare and not colon:
        return planner
    before = planner.argument.rpartition(":")[0]
    if not argument.startswith(before) or not argument.removeprefix(before).strip(":"):
        raise InputError(f"{name!r} names no model. Write {_form(head)}.")
    return planner


def check_planner(name: str, settings: ModelSettings | None = None) -> None:
    """Raise an error unless a planner has this name and takes these settings.

    Raises:
        InputError: None has it, or it does not take them.
    """
    planner, given = named_planner(name), settings or ModelSettings()
    refused = {
        part.name
        for part in fields(ModelSettings)
        if getattr(given, part.name) != part.default and part.name not in planner.takes
    }
    if "device" not in planner.takes and (of_models := refused & {"adapter", "device", "dtype"}):
        flags = ", ".join(f"--{setting}" for setting in sorted(of_models))
        raise InputError(
            f"The planner {name!r} is no local model. Leave {flags} out; "
            f"local models take it: --planner {LOCAL}FOLDER."
        )
    if "adapter" in refused:
        raise InputError(
            f"The planner {name!r} is an adapter itself. Leave --adapter out, or give it without "
            f"--planner; it goes with --planner {LOCAL}FOLDER."
        )
    if "constrained" in refused:
        raise InputError(
            f"The planner {name!r} has no grammar that can be left off. Leave --no-grammar out; it "
            f"goes with --planner {LOCAL}FOLDER."
        )
    if "examples" in refused:
        raise InputError(
            f"The planner {name!r} has no prompt. Leave --examples out; it goes with a language "
            "model."
        )


def check_shared(name: str | None) -> None:
    """Raise ``InputError`` where a planner of this name cannot plan for several askers.

    No name is the domain's own planner, which can.
    """
    if name is not None and not named_planner(name).shared:
        raise InputError(
            f"The planner {name!r} calls tools while it plans, for one asker, and here there are "
            "many. Choose another planner."
        )


def is_local(name: str) -> bool:
    """Return whether a planner of this name has a language model in this process."""
    return named_planner(name).model is not None


def writes_locally(name: str) -> bool:
    """Return whether the model of a planner of this name writes the whole plan in one call."""
    return "constrained" in named_planner(name).takes


def local_model(name: str, settings: ModelSettings) -> LanguageModel:
    """Return the language model of a planner's name; the last one is kept.

    Raises:
        InputError: There is no such model, or it cannot be used.
        DependencyError: A package that it needs is not installed, or the packaged base is not.
    """
    model = named_planner(name).model
    if model is None:
        raise InputError(f"The planner {name!r} has no language model in this process.")
    return model(name, settings)


def of_adapter(name: str | None, adapter: str | None) -> tuple[str | None, str | None]:
    """Return planner and adapter; an adapter without a planner is one, since it names its base."""
    if adapter is None or name is not None:
        return name, adapter
    return (f"{PARSER}:{adapter}" if is_parser(Path(adapter)) else LOCAL + adapter), None


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
    """Return the planner of a name; see ``PlannerParts``.

    Raises:
        InputError: There is no such planner or model, or it has nothing to learn from.
        DependencyError: A package that the planner needs is not installed.
    """
    given = settings or ModelSettings()
    check_planner(name, given)
    parts = PlannerParts(
        name, plan_cases, reader, given, queries or list, encoder, dict(scope or {})
    )
    return named_planner(name).make(parts)


def _form(name: str) -> str:
    """Return how a planner's name is written, with what stands after its colon."""
    try:
        argument = extension("planner", name).argument
    except CasewrightError:
        # Its package cannot be imported; who asks for it is told why.
        argument = ""
    return f"{name}:{argument}" if argument else name


def _chat(parts: PlannerParts) -> Planner:
    from casewright.planner.case_planner import CasePlanner
    from casewright.planner.chat_model import chat_model
    from casewright.planner.chat_planner import ChatPlanner
    from casewright.planner.plan_cases import EXAMPLES

    shown = parts.settings.examples
    return ChatPlanner(
        chat_model(parts.name),
        fallback=CasePlanner(parts.plan_cases, parts.reader),
        plan_cases=parts.plan_cases,
        examples=EXAMPLES if shown is None else shown,
    )


#: Of names that no entry point has: a model of LangChain's, as ``provider:model``.
CHAT = NamedPlanner(_chat, takes=frozenset({"examples"}), reads=True)
