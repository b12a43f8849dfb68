"""The probability of answers under a chat model whose API returns log-probabilities.

Such an API returns them for the text that the model writes, not for a text in the prompt. So the
answers are listed with letters, and an answer's probability is that of its letter as the first
token of the reply. Models prefer some positions of a list (Zheng et al. 2024), so each list is
asked for in both directions, and the log-probabilities are averaged.
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

#: Answers in one list: APIs return the probabilities of this many tokens at most.
LISTED = 20
#: Characters of a token, roughly, to estimate the tokens that are read.
_CHARACTERS = 4
_TASK = "\n\nWhich answer is right? Reply with its letter alone.\n"


class ChatScorer:
    """Scores answers with a chat model that returns log-probabilities.

    Demonstrations are shown as turns of the conversation. More than ``LISTED`` answers are split
    over several lists, which share the first answer and are scaled by it. A letter that is not
    among the likeliest tokens gets the least likely one's probability, an upper bound.

    Args:
        model: The chat model; it is called with ``logprobs`` and ``top_logprobs``.
        seconds: Deadline of one call.
    """

    def __init__(
        self, model: BaseChatModel, name: str, *, seconds: float = 60.0, concurrent: int = 8
    ) -> None:
        self.name = name
        self._model = model
        self._bound = model.bind(logprobs=True, top_logprobs=LISTED, max_tokens=1)
        self._seconds = seconds
        self._concurrent = concurrent

    def keys(self, question: Asked) -> list[str]:
        """Return for each answer a digest of the model's name and the whole list."""
        shown = [[item.question, item.answer] for item in question.demonstrations]
        parts = ["letters", self.name, question.question, shown, list(question.answers)]
        digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        return [f"{digest}:{index}" for index in range(len(question.answers))]

    def tokens(self, questions: Sequence[Asked]) -> int:
        """Return an estimate of the tokens that the model reads."""
        characters = 0
        for question in questions:
            shown = sum(len(d.question) + len(d.answer) for d in question.demonstrations)
            for indices in _lists(len(question.answers)):
                listed = sum(len(question.answers[index]) + 4 for index in indices)
                characters += 2 * (shown + len(question.question) + len(_TASK) + listed)
        return characters // _CHARACTERS

    def score(self, questions: Sequence[Asked]) -> Iterator[tuple[int, Sequence[Likelihood]]]:
        """Yield each question's index and its answers' likelihoods; see ``AnswerScorer``."""
        pool = ThreadPoolExecutor(self._concurrent)
        try:
            indices: dict[Future[list[Likelihood]], int] = {
                pool.submit(self._likelihoods, question): index
                for index, question in enumerate(questions)
            }
            for future in as_completed(indices):
                yield indices[future], future.result()
        finally:
            # A caller that stops early, or fails, does not wait for pending calls.
            pool.shutdown(wait=False, cancel_futures=True)

    def _likelihoods(self, question: Asked) -> list[Likelihood]:
        scores: dict[int, float] = {}
        for indices in _lists(len(question.answers)):
            ways = [self._letter_logprobs(question, way) for way in (indices, indices[::-1])]
            means = {index: (ways[0][index] + ways[1][index]) / 2 for index in indices}
            shift = scores[indices[0]] - means[indices[0]] if scores else 0.0
            scores |= {index: logprob + shift for index, logprob in means.items()}
        return [Likelihood(scores[index], 1) for index in range(len(question.answers))]

    def _letter_logprobs(self, question: Asked, indices: Sequence[int]) -> dict[int, float]:
        """Return the log-probability of each answer's letter, by the answer's index."""
        try:
            reply = ask(self._bound, _messages(question, indices), self._seconds)
        except Exception as error:
            raise ScoringError(
                f"{failure(self._model, error)} What was scored is kept: run it again."
            ) from error
        likeliest = _first_token(reply.response_metadata)
        if not likeliest:
            raise ScoringError(
                f"The chat model {self.name!r} returned no log-probabilities. Take one whose API "
                "has logprobs and top_logprobs, or a local model."
            )
        letters = zip(string.ascii_uppercase, indices, strict=False)
        return {index: _of_letter(letter, likeliest) for letter, index in letters}


def _lists(answers: int) -> list[list[int]]:
    """Return the indices of the answers in each list; the first answer is in all of them."""
    rest = list(range(1, answers))
    step = LISTED - 1
    return [[0, *rest[start : start + step]] for start in range(0, max(len(rest), 1), step)]


def _messages(question: Asked, indices: Sequence[int]) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage

    messages: list[BaseMessage] = []
    for demonstration in question.demonstrations:
        messages += [HumanMessage(demonstration.question), AIMessage(demonstration.answer)]
    letters = zip(string.ascii_uppercase, indices, strict=False)
    listed = "\n".join(f"{letter}. {question.answers[index]}" for letter, index in letters)
    return [*messages, HumanMessage(f"{question.question}{_TASK}{listed}")]


def _first_token(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the likeliest first tokens with their log-probabilities, from OpenAI's format."""
    try:
        tokens = metadata["logprobs"]["content"][0]["top_logprobs"]
        return {token["token"]: float(token["logprob"]) for token in tokens}
    except (KeyError, IndexError, TypeError, ValueError):
        return {}


def _of_letter(letter: str, likeliest: Mapping[str, float]) -> float:
    """Return a letter's log-probability, summed over all ways to write it."""
    ways = [logprob for token, logprob in likeliest.items() if token.strip(" .()\n*") == letter]
    return math.log(sum(map(math.exp, ways))) if ways else min(likeliest.values())
