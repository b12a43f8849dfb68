from __future__ import annotations

import pytest

from casewright.errors import DependencyError, InputError
from casewright.planner import chat_model


@pytest.mark.parametrize("name", ["", "gpt-4o-mini", ":gpt-4o-mini", "openai:", ":"])
def test_chat_model_name_without_provider_or_model_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="provider:model, for example openai:gpt-4o-mini") as error:
        chat_model(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("name", ["cohere:command-r", "google_vertexai:gemini"])
def test_chat_model_of_a_provider_that_is_not_installed_raises_dependency_error(name: str) -> None:
    with pytest.raises(DependencyError, match=name) as error:
        chat_model(name)
    assert "pip install" in str(error.value)
