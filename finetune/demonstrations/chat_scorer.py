"""The probability of answers by a chat model whose API tells log-probabilities.

Such an API tells them of what the model writes, not of a text that it is given. So the answers are
put before it as a lettered list, and an answer's probability is that of its letter as the first
token of the reply. Letters are preferred by their place in a list (Zheng et al. 2024), so each list
is asked for in both directions, and the logarithms are averaged.
"""

from __future__ import annotations

import hashlib
import json
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from casewright.errors import ScoringError
from casewright.finetune.demonstrations.judged import Asked, Likelihood
from casewright.planner.chat_call import ask, failure

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

#: Tokens whose probabilities APIs tell at most; answers in one list.
LISTED = 20
#: Characters of a token, about, for an estimate of what is read.
_CHARACTERS = 4
_TASK = "\n\nWhich answer is right? Reply with its letter alone.\n"


class ChatScorer:
    """Scores answers with a chat model that returns log-probabilities.

    Demonstrations are shown as turns of the conversation. Of more answers than ``LISTED``, the
    first stands in every list, by which the lists are brought to one scale.

    A letter that is not among the likeliest tokens is given the least likely one's probability,
    which it cannot exceed.

    Args:
        model: The chat model; it is asked for ``logprobs`` and ``top_logprobs``.
    """

    def __init__(
        self, model: BaseChatModel, name: str, *, seconds: float = 60.0, concurrent: int = 8
    ) -> None:
        self.name = name
        self._model = model
        self._asked = model.bind(logprobs=True, top_logprobs=LISTED, max_tokens=1)
        self._seconds = seconds
        self._concurrent = concurrent

    def keys(self, asked: Asked) -> list[str]:
        """Return for each answer a digest of the model's name and all that it was listed with."""
        shown = [
            [demonstration.question, demonstration.answer] for demonstration in asked.demonstrations
        ]
        parts = ["letters", self.name, asked.question, shown, list(asked.answers)]
        whole = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return [f"{whole}:{index}" for index in range(len(asked.answers))]

    def tokens(self, asked: Sequence[Asked]) -> int:
        """Return about how many tokens the model reads for these."""
        characters = 0
        for question in asked:
            shown = sum(len(d.question) + len(d.answer) for d in question.demonstrations)
            for places in _lists(len(question.answers)):
                listed = sum(len(question.answers[index]) + 4 for index in places)
                characters += 2 * (shown + len(question.question) + len(_TASK) + listed)
        return characters // _CHARACTERS

    def score(self, asked: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each question's place and its answers' likelihoods; see ``AnswerScorer``."""
        pool = ThreadPoolExecutor(self._concurrent)
        try:
            places: dict[Future[list[Likelihood]], int] = {
                pool.submit(self._likelihoods, question): index
                for index, question in enumerate(asked)
            }
            for done in as_completed(places):
                yield places[done], done.result()
        finally:
            # Whoever stops listening, by an error too, is not to wait for what is not under way.
            pool.shutdown(wait=False, cancel_futures=True)

    def _likelihoods(self, asked: Asked) -> list[Likelihood]:
        results: dict[int, float] = {}
        for places in _lists(len(asked.answers)):
            ways = [self._listed(asked, way) for way in (places, places[::-1])]
            means = {index: (ways[0][index] + ways[1][index]) / 2 for index in places}
            shift = results[places[0]] - means[places[0]] if results else 0.0
            results |= {index: logprob + shift for index, logprob in means.items()}
        return [Likelihood(results[index], 1) for index in range(len(asked.answers))]

    def _listed(self, asked: Asked, places: Sequence[int]) -> dict[int, float]:
        """Return the log-probability of each answer's letter, by the answer's place."""
        try:
            said = ask(self._asked, _messages(asked, places), self._seconds)
        except Exception as error:
            raise ScoringError(
                f"{failure(self._model, error)} What was scored is kept: run it again."
            ) from error
        facts = _first_token(said.response_metadata)
        if not facts:
            raise ScoringError(
                f"The chat model {self.name!r} told no log-probabilities. Take one whose API has "
                "logprobs and top_logprobs, or a local model."
            )
        least = min(facts.values())
        return {
            index: _of_letter(letter, facts, least)
            for letter, index in zip(string.ascii_uppercase, places, strict=False)
        }


def _lists(answers: int) -> list[list[int]]:
    """Return the places of the answers in each list; the first answer stands in all."""
    rest = list(range(1, answers))
    step = LISTED - 1
    return [[0, *rest[start : start + step]] for start in range(0, max(len(rest), 1), step)]


def _messages(asked: Asked, places: Sequence[int]) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage

    results: list[BaseMessage] = []
    for demonstration in asked.demonstrations:
        results += [HumanMessage(demonstration.question), AIMessage(demonstration.answer)]
    letters = zip(string.ascii_uppercase, places, strict=False)
    listed = "\n".join(f"{letter}. {asked.answers[index]}" for letter, index in letters)
    return [*results, HumanMessage(f"{asked.question}{_TASK}{listed}")]


def _first_token(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the likeliest first tokens with their log-probabilities, in OpenAI's form."""
    try:
        facts = metadata["logprobs"]["content"][0]["top_logprobs"]
        return {item["token"]: float(item["logprob"]) for item in facts}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _of_letter(letter: str, told: Mapping[str, float], least: float) -> float:
    """Return a letter's log-probability, in whichever ways it is written."""
    ways = [logprob for token, logprob in told.items() if token.strip(" .()\n*") == letter]
    return math.log(sum(map(math.exp, ways))) if ways else least
