"""Tool pools by a chat model: other names and descriptions for the tools of a toolbox."""

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


#: Names and descriptions to request for a tool, and for a parameter or result field.
COUNTS = {"names": 12, "descriptions": 10, "few": 6}


@dataclass(slots=True)
class PoolsMade:
    """The pools of a run, and the answers that could not be used.

    Attributes:
        pools: By tool, those of earlier runs included.
        dropped: By tool, the number of unusable entries of its answer.
        failed: By tool, why its answer was unusable; the next run requests it again.
    """

    pools: dict[str, ToolPool] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


class PoolMaker:
    """Makes pools with one call of a chat model for each tool; ``tell`` is called with its name."""

    def __init__(
        self,
        model: BaseChatModel,
        *,
        seconds: float = 120.0,
        tell: Callable[[str], None] = lambda tool: None,
    ) -> None:
        self._model = model
        self._seconds = seconds
        self._tell = tell

    def make(self, toolbox: Toolbox, path: Path) -> PoolsMade:
        """Make a pool for each tool without one in the file, and write the file after each.

        Raises:
            InputError: The file is unusable, or the model fails; the file keeps the pools so far.
        """
        result = PoolsMade(read_pools(path, toolbox) if path.exists() else {})
        for tool in toolbox:
            if tool.name in result.pools:
                continue
            text = self._answer(tool, toolbox, path)
            if (answer := json_object(text)) is None:
                result.failed[tool.name] = f"The answer is no JSON object: {text[:80]!r}."
                continue
            cleaner = _Cleaner(toolbox, result.pools)
            pool = cleaner.pool(tool, answer)
            result.dropped[tool.name] = cleaner.dropped
            if not pool.descriptions and not pool.names:
                result.failed[tool.name] = "The answer has no name and no description of use."
                continue
            result.pools[tool.name] = pool
            pools = {name: pool.model_dump(mode="json") for name, pool in result.pools.items()}
            try:
                write_whole(path, json.dumps(pools, ensure_ascii=False, indent=2) + "\n")
            except OSError as error:
                raise InputError(
                    f"{path} cannot be written: {error.strerror}. Name another file."
                ) from error
            self._tell(tool.name)
        return result

    def _answer(self, tool: ToolSpec, toolbox: Toolbox, path: Path) -> str:
        parameters = {parameter.name: parameter.description for parameter in tool.parameters}
        declared = {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "results": list(tool.results),
        }
        both = {"names": ["…"], "descriptions": ["…"]}
        template = {
            **both,
            "parameters": dict.fromkeys(parameters, both),
            "results": {name: ["…"] for name in tool.results},
        }
        request = WORDINGS["pools"].format(
            tool=json.dumps(declared, ensure_ascii=False, indent=1),
            others=", ".join(name for name in toolbox.names if name != tool.name),
            form=json.dumps(template, ensure_ascii=False),
            **COUNTS,
        )
        messages = [("system", WORDINGS["pools_role"]), ("user", request)]
        try:
            return str(ask(self._model, messages, self._seconds).text)
        except Exception as error:
            raise InputError(
                f"No pool for the tool {tool.name}: {no_answer(self._model, error, self._seconds)} "
                f"Correct this and run the command again: the pools in {path} are kept."
            ) from error


class _Cleaner:
    """Takes the usable entries of an answer, and counts the others."""

    def __init__(self, toolbox: Toolbox, pools: Mapping[str, ToolPool]) -> None:
        self._names = toolbox.names
        self._taken = {*toolbox.names, *(name for pool in pools.values() for name in pool.names)}
        self.dropped = 0

    def pool(self, tool: ToolSpec, answer: Mapping[str, Any]) -> ToolPool:
        names = self._read_names(answer.get("names"), self._taken)
        if tool.name == NO_EVIDENCE.name:
            self.dropped += len(names)
            names = ()
        parameters, results = _object(answer.get("parameters")), _object(answer.get("results"))
        taken = [parameter.name for parameter in tool.parameters]
        entries = {}
        for parameter in tool.parameters:
            entry = _object(parameters.get(parameter.name))
            entries[parameter.name] = ParameterPool(
                names=self._read_names(entry.get("names"), taken),
                descriptions=self._read_texts(entry.get("descriptions"), parameter.description),
            )
        return ToolPool(
            names=names,
            descriptions=self._read_texts(answer.get("descriptions"), tool.description),
            parameters=entries,
            results={
                name: self._read_names(results.get(name), tool.results) for name in tool.results
            },
        )

    def _read_names(self, entries: Any, taken: Iterable[str]) -> tuple[str, ...]:
        return self._usable(entries, taken, key_of, name_problem)

    def _read_texts(self, entries: Any, own: str) -> tuple[str, ...]:
        def key(text: str) -> str:
            return text.strip(" .").casefold()

        return self._usable(entries, [own], key, lambda t: description_problem(t, self._names))

    def _usable(
        self,
        entries: Any,
        taken: Iterable[str],
        key: Callable[[str], str],
        problem: Callable[[str], str],
    ) -> tuple[str, ...]:
        known = set(map(key, taken))
        texts = []
        for entry in entries if isinstance(entries, list) else []:
            text = " ".join(entry.split()) if isinstance(entry, str) else ""
            if not text or key(text) in known or problem(text):
                self.dropped += 1
                continue
            known.add(key(text))
            texts.append(text)
        return tuple(texts)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
