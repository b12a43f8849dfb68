"""A tokenizer's files, read without transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewright.errors import InputError
from casewright.planner.language_model.source import read_json

_DEFINITION, _SETTINGS, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"


class FileTokenizer:
    """Stands for a tokenizer of transformers, as far as planning asks something of it.

    Args:
        folder: With tokenizer.json, and beside it what ``save_pretrained`` writes.

    Raises:
        InputError: A file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self.backend_tokenizer = Tokenizer.from_file(str(folder / _DEFINITION))
        except Exception as error:  # The library raises nothing else.
            raise InputError(
                f"{folder / _DEFINITION} cannot be read: {error}. Copy the folder anew."
            ) from error
        settings = read_json(folder / _SETTINGS)
        named = {name: settings.get(name) for name in ("bos_token", "eos_token", "unk_token")}
        self._named = {name: token for name, token in named.items() if isinstance(token, str)}
        template = folder / _TEMPLATE
        own = template.read_text(encoding="utf-8") if template.is_file() else None
        self.chat_template: str = own or settings.get("chat_template") or ""

    @property
    def bos_token(self) -> str | None:
        """The token that begins a text."""
        return self._named.get("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        """The id of the token that ends a text."""
        token = self._named.get("eos_token")
        id_: int | None = None if token is None else self.backend_tokenizer.token_to_id(token)
        return id_

    def get_vocab(self) -> dict[str, int]:
        """Return all tokens, added ones too, and their ids."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab(with_added_tokens=True)
        return vocabulary

    def __call__(
        self, text: str, *, add_special_tokens: bool, return_offsets_mapping: bool = False
    ) -> dict[str, Any]:
        """Return a text's tokens, and from where to where each reaches in it."""
        made = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": made.ids, "offset_mapping": made.offsets}

    def apply_chat_template(
        self,
        turns: Sequence[Mapping[str, str]],
        *,
        add_generation_prompt: bool = False,
        **settings: Any,
    ) -> str:
        """Render the chat template in a sandbox, as transformers does."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def refuse(message: str) -> None:
            raise ValueError(message)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = refuse
        return environment.from_string(self.chat_template).render(
            messages=turns, add_generation_prompt=add_generation_prompt, **self._named, **settings
        )
