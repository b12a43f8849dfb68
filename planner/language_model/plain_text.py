"""Tokenization of untrusted text, without special tokens.

A question that contains ``</s>`` or ``<|im_end|>`` must not end the prompt, and a plan that quotes
it must not end the plan. Tokenizers first search a text for the names of special tokens. So this
copy of a tokenizer gives them random names, with the same ids.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Added tokens of words or spaces are text, unless they are declared special.
_WORDS = re.compile(r"[\w\s]*")


@dataclass(frozen=True, slots=True)
class PlainText:
    """Copy of a tokenizer that never produces special tokens.

    Tokenizers such as SentencePiece's put a space before a text, which is correct only for the
    first part of a prompt. This copy does not.

    Attributes:
        definition: The tokenizer as JSON of the ``tokenizers`` library.
        special: Ids of the special tokens: control tokens and other markup.
        tokenizer: The loaded tokenizer.
    """

    definition: str
    special: frozenset[int]
    tokenizer: Any

    @classmethod
    def of(cls, definition: str) -> PlainText:
        """Return the copy of a tokenizer, given as JSON of the ``tokenizers`` library."""
        from tokenizers import Tokenizer

        state = json.loads(definition)
        special = {t["id"]: t["content"] for t in state["added_tokens"] if _is_markup(t)}
        # Random in each process, so that no text can contain them.
        nonce = secrets.token_hex(8)
        names = {content: f"<{nonce}-{id_}>" for id_, content in special.items()}
        for token in state["added_tokens"]:
            if token["id"] in special:
                token.update(content=names[token["content"]], special=True)
        _rename(state["model"], names)
        state |= {"truncation": None, "padding": None, "post_processor": None}
        state["normalizer"] = _without_prefix(state["normalizer"])
        state["pre_tokenizer"] = _without_prefix(state["pre_tokenizer"])
        plain = json.dumps(state)
        return cls(plain, frozenset(special), Tokenizer.from_str(plain))

    def encode(self, text: str) -> list[int]:
        """Return a text's tokens. Thread-safe."""
        # The library raises for a lone surrogate.
        valid = text.encode("utf-8", "replace").decode()
        ids: list[int] = self.tokenizer.encode(valid, add_special_tokens=False).ids
        return ids


def _is_markup(token: Mapping[str, Any]) -> bool:
    return bool(token["special"]) or not _WORDS.fullmatch(token["content"])


def _rename(model: dict[str, Any], names: Mapping[str, str]) -> None:
    """Rename tokens in the JSON of a tokenizer's model."""
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(token, token): id_ for token, id_ in vocabulary.items()}
    else:  # Pieces of a Unigram model with their scores.
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    if "merges" in model:
        model["merges"] = [m for m in model["merges"] if not _renamed(m, names)]
    if "dropout" in model:
        model["dropout"] = None  # With dropout, the encoding would be random.


def _renamed(merge: Any, names: Mapping[str, str]) -> bool:
    """Return True if an input or the result of a merge is a renamed token."""
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left in names or right in names or left + right in names


def _without_prefix(part: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a normalizer or pre-tokenizer that puts no space before a text."""
    if part is None or part["type"] == "Prepend":
        return None
    inner = next((key for key in ("normalizers", "pretokenizers") if key in part), None)
    if inner:
        steps = [_without_prefix(step) for step in part[inner]]
        return part | {inner: [step for step in steps if step]}
    if "prepend_scheme" in part:
        return part | {"prepend_scheme": "never"}
    return part | {"add_prefix_space": False} if "add_prefix_space" in part else part
