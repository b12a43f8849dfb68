"""A scorer by a model's name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from casewright.errors import InputError
from casewright.planner import chat_model
from casewright.planner.shipped import SHIPPED, shipped_planner

if TYPE_CHECKING:
    from casewright.finetune.demonstrations.judged import AnswerScorer, QuestionForm
    from casewright.planner.language_model import LanguageModel

#: Before a folder's name, as in the names of planners.
_LOCAL = "local:"


def open_scorer(
    name: str,
    *,
    adapter: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    form: QuestionForm | None = None,
) -> AnswerScorer:
    """Return what scores answers by a model.

    Args:
        name: ``mistral`` for the one that ships; a causal language model's folder or its name at
            Hugging Face; or a chat model as ``provider:model``, whose API tells log-probabilities.
        adapter: An adapter of PEFT for a local model.
        device: See ``load_language_model``.
        dtype: See ``load_language_model``.
        form: How a prompt reads to a local model.

    Raises:
        InputError: There is no such model, or a chat model was given what is a local one's.
        DependencyError: A package that it needs is not installed.
    """
    if is_chat(name):
        if adapter or device or dtype:
            raise InputError(
                f"{name!r} is a chat model. Leave out adapter, device and dtype, which are for a "
                "local one."
            )
        from casewright.finetune.demonstrations.chat_scorer import ChatScorer

        return ChatScorer(chat_model(name), name)
    from casewright.finetune.demonstrations.model_scorer import ModelScorer

    return ModelScorer(_loaded(name, adapter, device, dtype), form=form)


def is_chat(name: str) -> bool:
    """Return whether a name is a chat model's."""
    return ":" in name and not name.startswith(_LOCAL) and not Path(name).is_dir()


def _loaded(name: str, adapter: str | None, device: str | None, dtype: str | None) -> LanguageModel:
    from casewright.planner.language_model import load_language_model

    source = shipped_planner() if name == SHIPPED else name.removeprefix(_LOCAL)
    title = name if name == SHIPPED else None
    return load_language_model(source, adapter=adapter, device=device, dtype=dtype, title=title)
