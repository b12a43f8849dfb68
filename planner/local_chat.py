"""A local language model as a LangChain chat model, for texts other than plans."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from pydantic import AliasChoices, Field

from casewright.planner.language_model import load_language_model
from casewright.planner.prompt import Prompt


def local_chat(name: str, *, temperature: float = 0, max_tokens: int = 256) -> LocalChat:
    """Return a local model as a chat model; for the name see ``load_language_model``."""
    model = load_language_model(name)
    return LocalChat(model=model, temperature=temperature, max_tokens=max_tokens)


class LocalChat(SimpleChatModel):
    """Chat model that samples answers from a language model, whose chat template it uses.

    Attributes:
        model: A ``LanguageModel``.
        max_tokens: Maximum number of tokens of an answer.
        temperature: Temperature of the sampling; at 0, the model writes the most probable tokens.
    """

    model: Any
    # ``tokens`` is the former name of this field.
    max_tokens: int = Field(default=1024, validation_alias=AliasChoices("max_tokens", "tokens"))
    temperature: float = 0.8

    @property
    def model_name(self) -> str:
        """Name of the language model."""
        return str(self.model.name)

    @property
    def _llm_type(self) -> str:
        return f"local:{self.model.name}"

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> str:
        torch = import_module("torch")
        # All messages become one user turn, since some chat templates have no system role.
        text = "\n\n".join(str(message.text) for message in messages)
        prompt = self.model.encode(Prompt(head="", tail=text))
        ids = torch.tensor([[*prompt.head, *prompt.tail]], device=self.model.device)
        with torch.inference_mode():
            output = self.model.network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=self.max_tokens,
                do_sample=self.temperature > 0,
                temperature=self.temperature or None,
                top_p=None,
                top_k=None,
                eos_token_id=list(self.model.ends),
                pad_token_id=self.model.ends[0],
            )
        return str(self.model.decode(output[0, ids.shape[1] :].tolist()))
