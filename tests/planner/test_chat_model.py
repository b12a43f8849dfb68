from __future__ import annotations

import pytest

from casewright.errors import DependencyError, InputError
from casewright.planner import chat_model


@pytest.mark.parametrize("name", ["", "gpt-4o-mini", ":gpt-4o-mini", "openai:", ":"])
def test_a_chat_model_is_named_by_provider_and_model(name: str) -> None:
    with pytest.raises(InputError, match="provider:model, for example openai:gpt-4o-mini") as error:
        chat_model(name)
    assert repr(name) in str(error.value)


@pytest.mark.parametrize("name", ["cohere:command-r", "google_vertexai:gemini"])
def test_a_provider_whose_package_is_not_installed_is_a_dependency_error(name: str) -> None:
    with pytest.raises(DependencyError, match=name) as error:
        chat_model(name)
    assert "pip install" in str(error.value)
    assert isinstance(error.value, ImportError)
