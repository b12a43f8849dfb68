"""Extracts entities with a chat model, as in CBR-RAG."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from casewright.errors import CasewrightError, InputError, one_line
from casewright.planner.chat_call import ask
from casewright.stores import Case
from casewright.stores.progress import note
from casewright_legal.alqa import read_alqa
from casewright_legal.entities import MAX_ENTITIES, extract_entities

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: The prompt's wording is not the paper's. The prompt names the kinds of entities in the paper's
#: published case base: parties and people, Acts with their sections, citations, places, dates.
PROMPT = """\
Extract the named entities and unique identifiers from the legal text below: case names and \
citations, Acts and regulations with their sections, courts, judges, parties, other people and \
organisations, places, dates and sums of money. Copy each as it is written in the text, once. \
Answer with a JSON list of strings and nothing else."""

#: The name of the extractor without a chat model.
OFFLINE = "offline"
#: Extraction fails if the model gives no usable answer for this number of texts at the start.
MAX_FAILED_TEXTS = 5
#: Maximum number of characters of an entity; a longer text is the model's own sentence.
MAX_ENTITY_LENGTH = 160
_FENCE = re.compile(r"```[a-zA-Z]*\n?|```")
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"^[\w \t]{0,40}:\s*")
_NO_ENTITIES = frozenset(("none", "no entities", "n/a", "[]", "{}"))
_NAME_FIELDS = ("entity", "name", "text", "value")


class Extraction(NamedTuple):
    """The entities of a text, a note on problems, and whether a model extracted the entities."""

    entities: list[str]
    note: str = ""
    by_model: bool = True


class ChatEntityExtractor:
    """An extractor that asks a LangChain chat model for the entities of a text.

    Entities that are not in the text are left out. If the model fails, takes longer than
    ``seconds``, or gives no usable answer, ``extract_entities`` is used instead.
    """

    def __init__(self, model: BaseChatModel, *, seconds: float = 60.0) -> None:
        self._model = model
        self._seconds = seconds

    def __call__(self, text: str) -> list[str]:
        """Return the entities of a text, without the note."""
        return self.extract(text).entities

    def extract(self, text: str) -> Extraction:
        """Return the entities of a text, with a note on problems."""
        from langchain_core.messages import HumanMessage

        # A text cannot contain its own hash, so it cannot forge the end of the quotation.
        tag = f"text-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
        message = HumanMessage(f"{PROMPT}\n\n<{tag}>\n{text}\n</{tag}>")
        try:
            reply = str(ask(self._model, [message], self._seconds).text)
        except Exception as error:  # noqa: BLE001 - a model's failure must not lose the case
            return _read_offline(text, f"the model failed: {one_line(error)}")
        entities = read_entities(reply)
        if entities is None:
            return _read_offline(text, f"the model's answer names no entities: {reply!r:.80}")
        normalised = " ".join(text.casefold().split())
        present = [name for name in entities if " ".join(name.casefold().split()) in normalised]
        if entities and not present:
            return _read_offline(text, "none of the entities that the model named is in the text")
        left_out_count = len(entities) - len(present)
        warning = f"Not in the text, so left out: {left_out_count} of {len(entities)} entities."
        return Extraction(present[:MAX_ENTITIES], warning if left_out_count else "")


def _read_offline(text: str, reason: str) -> Extraction:
    message = f"Extracted without the model: {reason}."
    return Extraction(extract_entities(text), message, by_model=False)


def read_entities(reply: str) -> list[str] | None:
    """Return the entities in an answer (JSON, lines or commas); ``None`` if it is unreadable."""
    unfenced = _FENCE.sub("", reply).strip()
    if unfenced.casefold().rstrip(".") in _NO_ENTITIES:
        return []
    json_texts = _from_json(unfenced)
    return _cleaned(_from_lines(unfenced) if json_texts is None else json_texts) or None


def _from_json(text: str) -> list[str] | None:
    """Return the texts in the first JSON list or object; ``None`` if there is none."""
    positions = [position for position in (text.find("["), text.find("{")) if position >= 0]
    if not positions:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, min(positions))
    except (ValueError, RecursionError):
        return None
    # A list without texts may be part of a citation, [2019]; the answer is not JSON then.
    return list(_texts(value)) or None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in nested lists and objects; of an object with a name, only the name."""
    # Without recursion, since an answer may be nested deeper than Python's limit.
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            stack += reversed(item)
        elif isinstance(item, dict):
            names = [item[field] for field in _NAME_FIELDS if isinstance(item.get(field), str)]
            stack += names[:1] or list(item.values())[::-1]


def _from_lines(text: str) -> list[str]:
    """Return the items of a bulleted list; without bullets, the lines, or the parts of one line."""
    lines = [line for line in text.splitlines() if line.strip()]
    bulleted = [line for line in lines if _BULLET.match(line)]
    if bulleted:
        return [_BULLET.sub("", line, count=1) for line in bulleted]
    if len(lines) > 1:
        return lines[1:] if lines[0].rstrip().endswith(":") else lines
    return re.split(r"[;,]", _HEADING.sub("", lines[0], count=1)) if lines else []


def _cleaned(entities: Iterable[str]) -> list[str]:
    entity_by_folded: dict[str, str] = {}
    for entity in entities:
        cleaned = " ".join(entity.split()).strip("\"'“”‘’`* .")
        if cleaned and len(cleaned) <= MAX_ENTITY_LENGTH:
            entity_by_folded.setdefault(cleaned.casefold(), cleaned)
    return list(entity_by_folded.values())


def check_extractor(name: str, setting: str) -> None:
    """Raise ``InputError`` if there is no extractor ``name``, the value of ``setting``."""
    provider, _, model = name.partition(":")
    if name != OFFLINE and not (provider and model):
        raise InputError(
            f"{setting} is {name!r}. The extractor of entities is {OFFLINE}, or a chat model as "
            "provider:model, for example openai:gpt-4o-mini."
        )


def read_with_chat(
    source: str | Path, model: BaseChatModel, *, progress: bool | None = True
) -> list[Case]:
    """Return the cases of ``read_alqa`` with entities extracted by a chat model.

    The model is called once for each case. If it gives no usable answer, the offline extractor
    reads the text; the number of such texts is printed to stderr. Raise ``CasewrightError`` if the
    model gives no usable answer for the first ``MAX_FAILED_TEXTS`` texts.
    """
    extractor = ChatEntityExtractor(model)
    failure_counts: Counter[str] = Counter()
    numbers = count(1)

    def extract(text: str) -> list[str]:
        number, extraction = next(numbers), extractor.extract(text)
        if not extraction.by_model:
            failure_counts[extraction.note] += 1
            if failure_counts.total() == number == MAX_FAILED_TEXTS:
                raise CasewrightError(
                    f"The chat model extracted no entities from the first {MAX_FAILED_TEXTS} "
                    f"texts. {extraction.note} Check the model, or use the extractor {OFFLINE}."
                )
        return extraction.entities

    cases = read_alqa(source, extract, progress=progress)
    if failure_counts:
        note(
            f"{failure_counts.total()} of {len(cases)} texts were read by the offline extractor. "
            f"The most frequent note: {failure_counts.most_common(1)[0][0]}"
        )
    return cases
