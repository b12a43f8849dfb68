"""Tokenization of untrusted text, without special tokens.

A question that contains ``</s>`` or ``<|im_end|>``, the names of special tokens, must not end the
prompt, and a plan that quotes such a name must not end there. Tokenizers first search a text for
these names, so this module's copy of a tokenizer gives the tokens random names and keeps their ids.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Pattern of added tokens that are ordinary text, not markup, unless they are declared special.
_WORDS_OR_SPACES = re.compile(r"[\w\s]*")


@dataclass(frozen=True, slots=True)
class PlainTokenizer:
    """A tokenizer's copy that never produces special tokens.

    Tokenizers such as SentencePiece's put a space before a text. This copy does not, since a
    space would be correct only before the first part of a prompt.

    Attributes:
        definition: The copy as JSON of the ``tokenizers`` library.
        special_ids: Ids of the special tokens: control tokens and other markup.
        tokenizer: The copy itself, a ``tokenizers.Tokenizer``.
    """

    definition: str
    special_ids: frozenset[int]
    tokenizer: Any

    @classmethod
    def of(cls, definition: str) -> PlainTokenizer:
        """Return a copy of the tokenizer that this JSON of the ``tokenizers`` library defines."""
        from tokenizers import Tokenizer

        state = json.loads(definition)
        content_by_id = {t["id"]: t["content"] for t in state["added_tokens"] if _is_markup(t)}
        # The names are random in each process, so that no text can contain them.
        nonce = secrets.token_hex(8)
        new_names = {content: f"<{nonce}-{id_}>" for id_, content in content_by_id.items()}
        for token in state["added_tokens"]:
            if token["id"] in content_by_id:
                token.update(content=new_names[token["content"]], special=True)
        _rename(state["model"], new_names)
        state |= {"truncation": None, "padding": None, "post_processor": None}
        state["normalizer"] = _without_prefix(state["normalizer"])
        state["pre_tokenizer"] = _without_prefix(state["pre_tokenizer"])
        renamed = json.dumps(state)
        return cls(renamed, frozenset(content_by_id), Tokenizer.from_str(renamed))

    def encode(self, text: str) -> list[int]:
        """Return a text's tokens. Thread-safe."""
        # The library raises an error for a lone surrogate.
        valid = text.encode("utf-8", "replace").decode()
        ids: list[int] = self.tokenizer.encode(valid, add_special_tokens=False).ids
        return ids


def _is_markup(token: Mapping[str, Any]) -> bool:
    return bool(token["special"]) or not _WORDS_OR_SPACES.fullmatch(token["content"])


def _rename(model: dict[str, Any], new_names: Mapping[str, str]) -> None:
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {new_names.get(token, token): id_ for token, id_ in vocabulary.items()}
    else:  # Pieces of a Unigram model with their scores.
        model["vocab"] = [[new_names.get(piece, piece), score] for piece, score in vocabulary]
    if model.get("unk_token") in new_names:
        model["unk_token"] = new_names[model["unk_token"]]
    if "merges" in model:
        # A merge that refers to a former name would be invalid.
        model["merges"] = [m for m in model["merges"] if not _has_renamed_token(m, new_names)]
    if "dropout" in model:
        model["dropout"] = None  # BPE dropout makes the encoding random.


def _has_renamed_token(merge: Any, new_names: Mapping[str, str]) -> bool:
    """Return True if a merge's left part, right part or result is a renamed token."""
    left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
    return left in new_names or right in new_names or left + right in new_names


def _without_prefix(component: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a tokenizer's component, changed so that it puts no space before a text."""
    if component is None or component["type"] == "Prepend":
        return None
    nested_key = next((key for key in ("normalizers", "pretokenizers") if key in component), None)
    if nested_key:
        steps = [_without_prefix(step) for step in component[nested_key]]
        return component | {nested_key: [step for step in steps if step]}
    if "prepend_scheme" in component:
        return component | {"prepend_scheme": "never"}
    if "add_prefix_space" in component:
        return component | {"add_prefix_space": False}
    return component
