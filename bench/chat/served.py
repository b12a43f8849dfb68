"""The model that is measured: a user's server, or one on this machine with a random model."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from casewright.bench.chat.local_server import local_server
from casewright.bench.chat.random_model import save_random_model
from casewright.errors import InputError
from casewright.planner import chat_model
from casewright.planner.chat_call import ask
from casewright.planner.chat_failure import failure

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

#: What the random model is called.
RANDOM = "random-mistral"
#: Completions of one token that are timed, after some that are not: a server's first are slower.
ROUND_TRIPS, WARM = 20, 2


@dataclass(frozen=True, slots=True)
class Served:
    """A model behind an OpenAI-compatible API.

    Attributes:
        url: Of the API.
        name: What the server calls the model.
        parameters: How many it has, of the random model; ``None`` of others.
    """

    url: str
    name: str
    parameters: int | None = None

    def client(self, tokens: int | None, **settings: Any) -> BaseChatModel:
        """Return the client that users have, by LangChain's name for it.

        Args:
            tokens: The most that an answer may have; ``None`` leaves it to the server.
            settings: Passed on.

        Raises:
            InputError: The URL is none, or the client refuses its settings.
            DependencyError: It is not installed.
        """
        bound = {} if tokens is None else {"max_tokens": tokens}
        return chat_model(f"openai:{self.name}", base_url=self.url, **bound, **settings)

    def round_trips(self, seconds: float) -> list[float]:
        """Return the milliseconds of completions of one token, which cost next to no computing.

        Args:
            seconds: Deadline of each.

        Raises:
            InputError: The server does not answer.
        """
        from langchain_core.messages import HumanMessage

        client, spent = self.client(1), []
        for _ in range(WARM + ROUND_TRIPS):
            started = time.perf_counter()
            try:
                ask(client, [HumanMessage("Hello")], seconds)
            except Exception as error:  # a server may fail in any way
                raise InputError(f"{failure(client, error)}. Look at --url and --model.") from error
            spent.append((time.perf_counter() - started) * 1000)
        return spent[WARM:]


@contextmanager
def served(url: str | None, model: str | None, texts: Iterable[str]) -> Iterator[Served]:
    """Yield the model of a URL; without one, a random model that is served until the block ends.

    Args:
        url: Of an API.
        model: What that server calls its model.
        texts: What the random model's tokenizer is trained on.

    Raises:
        InputError: Only one of ``url`` and ``model`` is given.
        CasewrightError: The server on this machine cannot be started, or fails.
    """
    if (url is None) != (model is None):
        raise InputError("--url and --model go together: where the server is, and what it serves.")
    if url is not None and model is not None:
        yield Served(url, model)
        return
    with TemporaryDirectory(prefix="casewright-model-") as own:
        folder = Path(own) / RANDOM
        parameters = save_random_model(folder, texts)
        with local_server(folder) as address:
            yield Served(address, RANDOM, parameters)
