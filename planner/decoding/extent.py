"""How much a network holds, as its configuration says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from casewright.planner.language_model import LanguageModel


def layers(model: LanguageModel) -> int:
    """Return how many layers have key/value states."""
    return int(_config(model).num_hidden_layers)


def window(model: LanguageModel) -> int | None:
    """Return how far back attention sees, where it does not see everything."""
    config = _config(model)
    size = getattr(config, "sliding_window", None)
    if not size or getattr(config, "use_sliding_window", True) is False:
        return None
    return int(size)


def _config(model: LanguageModel) -> Any:
    # Models of several modalities keep their language model's settings in a part of their own.
    return model.network.config.get_text_config()
