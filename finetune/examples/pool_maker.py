"""Asks a chat model for tool pools: other names and descriptions for the tools of any toolbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.errors import InputError
from casewright.finetune.examples.ttg import WORDINGS
from casewright.finetune.queries.no_answer import json_object, no_answer
from casewright.finetune.tool_pools import (
    ParameterPool,
    ToolPool,
    description_problem,
    key_of,
    name_problem,
    read_pools,
)
from casewright.planner.chat_call import ask
from casewright.stores.whole_file import write_whole
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(slots=True)
class PoolsMade:
    """The pools of a run, and the answers that could not be used.

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
        names: How many names a tool is to have.
        few: How many of each a parameter, and names a result field.
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
        result = PoolsMade(read_pools(path, toolbox) if path.exists() else {})
        for tool in toolbox:
            if tool.name in result.pools:
                continue
            text = self._answer(tool, toolbox, path)
            if (given := json_object(text)) is None:
                result.failed[tool.name] = f"The answer is no JSON object: {text[:80]!r}."
                continue
            cleaned = _Cleaned(toolbox, result.pools)
            pool = cleaned.pool(tool, given)
            result.dropped[tool.name] = cleaned.dropped
            if not pool.descriptions and not pool.names:
                result.failed[tool.name] = "The answer has no name and no description of use."
                continue
            result.pools[tool.name] = pool
            _write(result.pools, path)
            self._tell(tool.name)
        return result

    def _answer(self, tool: ToolSpec, toolbox: Toolbox, path: Path) -> str:
        from langchain_core.messages import HumanMessage, SystemMessage

        parameters = {parameter.name: parameter.description for parameter in tool.parameters}
        declared = {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "results": list(tool.results),
        }
        both = {"names": ["…"], "descriptions": ["…"]}
        form = {
            **both,
            "parameters": dict.fromkeys(parameters, both),
            "results": {name: ["…"] for name in tool.results},
        }
        asked = WORDINGS["pools"].format(
            tool=json.dumps(declared, ensure_ascii=False, indent=1),
            others=", ".join(name for name in toolbox.names if name != tool.name),
            form=json.dumps(form, ensure_ascii=False),
            **self._counts,
        )
        try:
            said = ask(
                self._model,
                [SystemMessage(WORDINGS["pools_role"]), HumanMessage(asked)],
                self._seconds,
            )
            return str(said.text)
        except Exception as error:
            raise InputError(
                f"No pool for the tool {tool.name}: {no_answer(self._model, error, self._seconds)} "
                f"Mend it and ask again: tools that {path} has are not asked for twice."
            ) from error


class _Cleaned:
    """Takes over of an answer what can be used, and counts the rest."""

    def __init__(self, toolbox: Toolbox, pools: Mapping[str, ToolPool]) -> None:
        self._names = toolbox.names
        self._taken = {*toolbox.names, *(name for pool in pools.values() for name in pool.names)}
        self.dropped = 0

    def pool(self, tool: ToolSpec, given: Mapping[str, Any]) -> ToolPool:
        names = self._named(given.get("names"), self._taken)
        if tool.name == NO_EVIDENCE.name:
            self.dropped += len(names)
            names = ()
        parameters, results = _object(given.get("parameters")), _object(given.get("results"))
        own = [parameter.name for parameter in tool.parameters]
        entries = {}
        for parameter in tool.parameters:
            said = _object(parameters.get(parameter.name))
            entries[parameter.name] = ParameterPool(
                names=self._named(said.get("names"), own),
                descriptions=self._described(said.get("descriptions"), parameter.description),
            )
        return ToolPool(
            names=names,
            descriptions=self._described(given.get("descriptions"), tool.description),
            parameters=entries,
            results={name: self._named(results.get(name), tool.results) for name in tool.results},
        )

    def _named(self, given: Any, taken: Iterable[str]) -> tuple[str, ...]:
        return self._kept(given, taken, key_of, name_problem)

    def _described(self, given: Any, own: str) -> tuple[str, ...]:
        def key(text: str) -> str:
            return text.strip(" .").casefold()

        return self._kept(given, [own], key, lambda text: description_problem(text, self._names))

    def _kept(
        self,
        given: Any,
        taken: Iterable[str],
        key: Callable[[str], str],
        problem: Callable[[str], str],
    ) -> tuple[str, ...]:
        known = set(map(key, taken))
        kept = []
        for entry in given if isinstance(given, list) else []:
            text = " ".join(entry.split()) if isinstance(entry, str) else ""
            if not text or key(text) in known or problem(text):
                self.dropped += 1
                continue
            known.add(key(text))
            kept.append(text)
        return tuple(kept)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _write(pools: Mapping[str, ToolPool], path: Path) -> None:
    """Write the file whole, or leave it as it was."""
    plain = {tool: pool.model_dump(mode="json") for tool, pool in pools.items()}
    try:
        write_whole(path, json.dumps(plain, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Name another file."
        ) from error
