"""What a chat model is asked in Evol-Instruct, and how its answers are read.

The operations are those of in-depth evolving (Xu et al. 2023, arXiv:2304.12244, section 3.2 and
appendix A); "complicate input" is left out, since it is about data in the prompt. What the paper
leaves to the model's word is closed here: the constraint on the answer's form is chosen from a list
and named, so that the answer can be verified.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from casewright.finetune.instructions.constraint import TEXT_KINDS

OPERATIONS: Mapping[str, str] = MappingProxyType(
    {
        "constraints": "Add one more constraint or requirement.",
        "deepening": "If it asks about certain issues, ask about them more deeply or broadly.",
        "concretizing": "Replace general concepts with more specific concepts.",
        "reasoning": "If a few simple steps answer it, rewrite it so that more steps of reasoning "
        "are explicitly asked for.",
    }
)
#: What the model is offered; to repeat the request means nothing once the request is another.
CHAT_KINDS = {name: kind for name, kind in TEXT_KINDS.items() if name != "repeats_request"}
_TYPES = {int: "a whole number", str: "a text", list: "a list of texts"}

_REWRITE = """\
Rewrite the instruction at the end so that it is a bit harder for a language model, and still \
reasonable: a person must be able to understand and to follow it.
{operation}
The rewritten instruction also asks for one thing about the form of its answer, of one of these \
kinds, so that a program can verify it:
{kinds}
Do not make it more than 30 words longer, and do not follow it. Reply with one JSON object and \
nothing else:
{{"instruction": "the whole rewritten instruction, what it asks of the form included", \
"constraint": {{"kind": "…", "parameters": {{…}}}}}}

The instruction:
{instruction}"""


def rewrite_prompt(instruction: str, operation: str) -> str:
    """Return what asks for a harder instruction, by one of ``OPERATIONS``."""
    listed = "\n".join(
        f"- {name} {_shown(kind.parameters)}: {kind.says}" for name, kind in CHAT_KINDS.items()
    )
    return _REWRITE.format(operation=OPERATIONS[operation], kinds=listed, instruction=instruction)


def read_rewrite(text: str) -> tuple[str, Any]:
    """Return the new instruction and its constraint's record; both empty where there is none."""
    start, end = text.find("{"), text.rfind("}")
    try:
        read = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(read, dict) or not isinstance(read.get("instruction"), str):
        return "", None
    return read["instruction"].strip(), read.get("constraint")


def _shown(parameters: Mapping[str, type]) -> str:
    inside = ", ".join(f'"{name}": {_TYPES[type_]}' for name, type_ in parameters.items())
    return f"{{{inside}}}"
