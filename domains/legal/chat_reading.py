"""Cases whose entities a chat model extracts, and what happens where it does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from casewright.domains.legal.alqa import read_alqa
from casewright.domains.legal.chat_entities import ChatEntityExtractor
from casewright.errors import CasewrightError, InputError
from casewright.stores import Case
from casewright.stores.progress import note

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: What stands in place of a chat model's name for the extractor that has none.
OFFLINE = "offline"
#: After so many texts without one usable answer, the model will not answer the others either.
TRIED = 5


def check_extractor(name: str, where: str) -> None:
    """Look whether a name can be an extractor's: ``offline`` or ``provider:model``.

    Args:
        name: The name.
        where: The option or environment variable that holds it, for the message.

    Raises:
        InputError: It can not.
    """
    provider, _, model = name.partition(":")
    if name != OFFLINE and not (provider and model):
        raise InputError(
            f"{where} is {name!r}. Entities are extracted by {OFFLINE}, or by a chat model as "
            "provider:model, for example openai:gpt-4o-mini."
        )


def read_with_chat(
    source: str | Path, model: BaseChatModel, *, progress: bool | None = True
) -> list[Case]:
    """Read ALQA as ``read_alqa`` does, the entities extracted by a chat model.

    A text for which the model has no usable answer is read by the offline extractor; how many
    there were is told on stderr.

    Args:
        source: Path of ``qa.jsonl``, or the set's name on Hugging Face.
        model: Any LangChain chat model; it is asked once a case.
        progress: Show a bar on stderr; ``None`` shows it on a terminal for long work.

    Raises:
        InputError: The source cannot be read, or a record has another form.
        DependencyError: A name was given, and ``datasets`` is not installed.
        CasewrightError: The model answers none of the first texts.
    """
    extractor = _Counting(ChatEntityExtractor(model))
    cases = read_alqa(source, extractor, progress=progress)
    if extractor.replaced:
        note(
            f"{extractor.replaced.total()} of {len(cases)} texts were read by the offline "
            f"extractor. Most often: {extractor.replaced.most_common(1)[0][0]}"
        )
    return cases


class _Counting:
    """Extracts, and counts why the model was replaced."""

    def __init__(self, extractor: ChatEntityExtractor) -> None:
        self._extractor = extractor
        self._answered = False
        self.replaced: Counter[str] = Counter()

    def __call__(self, text: str) -> list[str]:
        found = self._extractor.extract(text)
        if found.by_model:
            self._answered = True
            return found.entities
        self.replaced[found.note] += 1
        if not self._answered and self.replaced.total() >= TRIED:
            raise CasewrightError(
                f"The chat model extracted no entities from the first {TRIED} texts. "
                f"{found.note} Look after the model, or extract {OFFLINE}."
            )
        return found.entities
