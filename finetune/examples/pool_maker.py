"""Asks a chat model for tool pools: other names and descriptions for the tools of any toolbox."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.examples.tool_pools import (
    ParameterPool,
    ToolPool,
    description_problem,
    key_of,
    name_problem,
    read_pools,
)
from casewright.finetune.queries.no_answer import no_answer
from casewright.planner.chat_call import ask
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_SYSTEM = """\
You rename and reword the declarations of tools, so that a planner learns to read what a tool does \
in place of learning its name by heart. You answer with one JSON object and nothing else."""

_ASKED = """\
Here is a tool:
{tool}

Give {names} other names that a programmer could have chosen for it, in several styles \
(snake_case, camelCase, abbreviated, another language), and {descriptions} other descriptions, \
short and long, formal and plain. Do the same for each parameter, with {few} names and {few} \
descriptions, and give {few} other names for each result field.

- A description says exactly what the tool's own says: it leaves nothing out and adds nothing.
- A name is made of letters, digits and underscores, and fits no other of these tools: {others}.
- No description mentions the name of a tool.

Answer in this form:
{form}"""


@dataclass(slots=True)
class PoolsMade:
    """What came of it.

    Attributes:
        pools: By tool, those that the file had before included.
        dropped: By tool, how many entries of its answer could not be used: repeated, no names,
            another tool's, or descriptions that are empty or name a tool.
        failed: By tool, why its answer was of no use; such a tool is asked for again next time.
    """

    pools: dict[str, ToolPool] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class PoolMaker:
    """Makes pools by one call of a chat model a tool.

    Args:
        model: Any LangChain chat model.
        names: How many names a tool is to have.
        descriptions: How many descriptions.
        few: How many of each a parameter, and names a result field.
        seconds: Deadline of one call.
        tell: Told of each tool that is done.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        names: int = 12,
        descriptions: int = 10,
        few: int = 6,
        seconds: float = 120.0,
        tell: Callable[[str], None] = lambda tool: None,
    ) -> None:
        self._model = model
        self._counts = {"names": names, "descriptions": descriptions, "few": few}
        self._seconds = seconds
        self._tell = tell

    def make(self, toolbox: Toolbox, path: Path) -> PoolsMade:
        """Make a pool for each tool that the file has none for, and write the file after each.

        Raises:
            InputError: The file is there and unusable or cannot be written, or the model fails or
                takes too long; what was made before is kept, and made use of the next time.
        """
        made = PoolsMade(read_pools(path, toolbox) if path.exists() else {})
        for tool in toolbox:
            if tool.name in made.pools:
                continue
            given = self._answer(tool, toolbox, path)
            if isinstance(given, str):
                made.failed[tool.name] = given
                continue
            cleaned = _Cleaned(tool, toolbox, made.pools)
            pool = cleaned.pool(given)
            made.dropped[tool.name] = cleaned.dropped
            if not pool.descriptions and not pool.names:
                made.failed[tool.name] = "The answer has no name and no description of use."
                continue
            made.pools[tool.name] = pool
            _write(made.pools, path)
            self._tell(tool.name)
        return made

    def _answer(self, tool: ToolSpec, toolbox: Toolbox, path: Path) -> dict[str, Any] | str:
        """Return the decoded answer, or why it is none."""
        from langchain_core.messages import HumanMessage, SystemMessage

        others = ", ".join(name for name in toolbox.names if name != tool.name)
        asked = _ASKED.format(
            tool=json.dumps(_declared(tool), ensure_ascii=False, indent=1),
            others=others,
            form=json.dumps(_form(tool), ensure_ascii=False),
            **self._counts,
        )
        try:
            said = ask(self._model, [SystemMessage(_SYSTEM), HumanMessage(asked)], self._seconds)
            text = str(said.text)
        except Exception as error:
            raise InputError(
                f"No pool for the tool {tool.name}: {no_answer(self._model, error, self._seconds)} "
                f"Mend it and ask again: tools that {path} has are not asked for twice."
            ) from error
        try:
            # Models put words and fences around what they were asked for.
            value = json.loads(text[text.index("{") : text.rindex("}") + 1])
        except (ValueError, RecursionError):
            return f"The answer is no JSON object: {text[:80]!r}."
        return value if isinstance(value, dict) else "The answer is no JSON object."


class _Cleaned:
    """Takes over of an answer what can be used, and counts the rest."""

    def __init__(self, tool: ToolSpec, toolbox: Toolbox, pools: Mapping[str, ToolPool]) -> None:
        self._tool = tool
        self._names = toolbox.names
        self._taken = {key_of(name) for name in toolbox.names}
        self._taken |= {key_of(name) for pool in pools.values() for name in pool.names}
        self.dropped = 0

    def pool(self, given: Mapping[str, Any]) -> ToolPool:
        tool = self._tool
        names = self._named(given.get("names"), self._taken)
        if tool.name == NO_EVIDENCE.name:
            self.dropped += len(names)
            names = ()
        parameters = _object(given.get("parameters"))
        results = _object(given.get("results"))
        own = {key_of(parameter.name) for parameter in tool.parameters}
        return ToolPool(
            names=names,
            descriptions=self._described(given.get("descriptions"), tool.description),
            parameters={
                parameter.name: self._parameter(
                    _object(parameters.get(parameter.name)), own, parameter.description
                )
                for parameter in tool.parameters
            },
            results={
                result: self._named(results.get(result), {key_of(name) for name in tool.results})
                for result in tool.results
            },
        )

    def _parameter(
        self, given: Mapping[str, Any], taken: Iterable[str], description: str
    ) -> ParameterPool:
        return ParameterPool(
            names=self._named(given.get("names"), taken),
            descriptions=self._described(given.get("descriptions"), description),
        )

    def _named(self, given: Any, taken: Iterable[str]) -> tuple[str, ...]:
        return self._kept(given, taken, key_of, lambda text: not name_problem(text))

    def _described(self, given: Any, own: str) -> tuple[str, ...]:
        def usable(text: str) -> bool:
            return not description_problem(text, self._names)

        def key(text: str) -> str:
            return text.strip(" .").casefold()

        return self._kept(given, [key(own)], key, usable)

    def _kept(
        self,
        given: Any,
        taken: Iterable[str],
        key: Callable[[str], str],
        usable: Callable[[str], bool],
    ) -> tuple[str, ...]:
        known = set(taken)
        kept = []
        for entry in given if isinstance(given, list) else []:
            text = " ".join(entry.split()) if isinstance(entry, str) else ""
            if not text or key(text) in known or not usable(text):
                self.dropped += 1
                continue
            known.add(key(text))
            kept.append(text)
        return tuple(kept)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _declared(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": {parameter.name: parameter.description for parameter in tool.parameters},
        "results": list(tool.results),
    }


def _form(tool: ToolSpec) -> dict[str, Any]:
    both: dict[str, list[str]] = {"names": ["…"], "descriptions": ["…"]}
    return {
        **both,
        "parameters": {parameter.name: both for parameter in tool.parameters},
        "results": {result: ["…"] for result in tool.results},
    }


def _write(pools: Mapping[str, ToolPool], path: Path) -> None:
    """Write the file whole, or leave it as it was."""
    plain = {tool: pool.model_dump(mode="json") for tool, pool in pools.items()}
    # A name of its own: another run may be writing the same pools.
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Name another file."
        ) from error
