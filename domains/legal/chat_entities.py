"""Entities extracted by a chat model, as CBR-RAG extracts those of its case base."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from casewright.domains.legal.entities import MOST, extract_entities
from casewright.errors import told
from casewright.planner.chat_call import ask

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: In our words; it asks for what the paper's published case base holds: names of parties and
#: people, Acts with their sections, citations, places, dates.
PROMPT = """\
Extract the named entities and unique identifiers from the legal text below: case names and \
citations, Acts and regulations with their sections, courts, judges, parties, other people and \
organisations, places, dates and sums of money. Copy each as it is written in the text, once. \
Answer with a JSON list of strings and nothing else."""

#: A longer entry is a sentence of the model's own.
LONGEST = 160
_FENCE = re.compile(r"```[a-zA-Z]*\n?|```")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"^[\w \t]{0,40}:\s*")
_NONE = frozenset(("none", "no entities", "n/a", "[]", "{}"))
_FIELDS = ("entity", "name", "text", "value")


@dataclass(frozen=True, slots=True)
class Extraction:
    """The entities of a text.

    Attributes:
        entities: In the order in which they were named.
        note: What went wrong with the model, and what was done; empty where nothing did.
        by_model: Whether the model named them, and not the offline extractor in its place.
    """

    entities: list[str]
    note: str = ""
    by_model: bool = True


class ChatEntityExtractor:
    """Asks any LangChain chat model for the entities of a text.

    What the model names but the text does not hold is left out. Where the model fails, or nothing
    can be read from its answer, the offline extractor takes its place, and the note says why.

    Args:
        model: Any LangChain chat model.
        prompt: What to ask; the text follows it.
        fallback: Extracts where the model does not.
        seconds: Deadline for one text.
    """

    def __init__(
        self,
        model: BaseChatModel,
        *,
        prompt: str = PROMPT,
        fallback: Callable[[str], Sequence[str]] = extract_entities,
        seconds: float = 60.0,
    ) -> None:
        self._model = model
        self._prompt = prompt
        self._fallback = fallback
        self._seconds = seconds

    def __call__(self, text: str) -> list[str]:
        """Return the entities of a text, without the note."""
        return self.extract(text).entities

    def extract(self, text: str) -> Extraction:
        """Return the entities of a text, and what went wrong."""
        from langchain_core.messages import HumanMessage

        # No text can hold its own hash, so none can forge the end of what is quoted.
        tag = f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
        message = HumanMessage(f"{self._prompt}\n\n<{tag}>\n{text}\n</{tag}>")
        try:
            reply = str(ask(self._model, [message], self._seconds).text)
        except Exception as error:  # noqa: BLE001 - a model's failure must not lose the case
            return self._without(text, f"the model failed: {told(error)}")
        named = read_entities(reply)
        if named is None:
            return self._without(text, f"the model's answer names no entities: {reply!r:.80}")
        there = " ".join(text.casefold().split())
        held = [entity for entity in named if " ".join(entity.casefold().split()) in there]
        if named and not held:
            return self._without(text, "none of the entities that the model named is in the text")
        left_out = len(named) - len(held)
        note = f"{left_out} of {len(named)} entities are not in the text: left out." * bool(
            left_out
        )
        return Extraction(held[:MOST], note)

    def _without(self, text: str, why: str) -> Extraction:
        note = f"Extracted without the model: {why}."
        return Extraction(list(self._fallback(text)), note, by_model=False)


def read_entities(reply: str) -> list[str] | None:
    """Read a model's answer: JSON, a list of lines, or names parted by commas.

    Returns:
        The entities, each once; none where the model says that there are none; ``None`` where the
        answer cannot be read.
    """
    plain = _FENCE.sub("", reply).strip()
    if plain.casefold().rstrip(".") in _NONE:
        return []
    found = _from_json(plain)
    return _once(_from_lines(plain) if found is None else found) or None


def _from_json(text: str) -> list[str] | None:
    """Read the first JSON list or object of an answer; ``None`` where it has none."""
    starts = [at for at in (text.find("["), text.find("{")) if at >= 0]
    if not starts:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, min(starts))
    except (ValueError, RecursionError):
        return None
    # A text may begin with a citation: [2019].
    return list(_texts(value)) or None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of lists, of lists in objects, and of objects that describe an entity."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            described = [item[field] for field in _FIELDS if isinstance(item.get(field), str)]
            waiting += described[:1] or list(item.values())[::-1]


def _from_lines(text: str) -> Iterator[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    bulleted = [line for line in lines if _BULLET.match(line)]
    if bulleted:
        yield from (_BULLET.sub("", line, count=1) for line in bulleted)
    elif len(lines) > 1:
        yield from lines[1:] if lines[0].rstrip().endswith(":") else lines
    else:
        for line in lines:
            yield from re.split(r"[;,]", _HEADING.sub("", line, count=1))


def _once(entities: Iterable[str]) -> list[str]:
    seen: dict[str, str] = {}
    for entity in entities:
        plain = " ".join(entity.split()).strip("\"'“”‘’`* .")
        if plain and len(plain) <= LONGEST:
            seen.setdefault(plain.casefold(), plain)
    return list(seen.values())
