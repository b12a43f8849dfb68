"""A local causal language model, and the tokenization of a planner's prompts for it."""

from casewright.planner.language_model.language_model import LanguageModel
from casewright.planner.language_model.load import load_language_model
from casewright.planner.language_model.prompt_tokens import PromptTokens

__all__ = ["LanguageModel", "PromptTokens", "load_language_model"]
