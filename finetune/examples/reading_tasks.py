"""Secondary tasks that read a plan or a question, and write no plan."""

from __future__ import annotations

import json
import random

from casewright.finetune.examples.secondary import WORDINGS, Posed, Subject, shared_head
from casewright.finetune.examples.tevo import Evolved
from casewright.planner import Prompt, is_span
from casewright.planner.literals import text_literals


def query_from_plan(subject: Subject, rng: random.Random) -> Posed | None:
    """Write the query from the plan.

    Many questions have one plan. The prompt therefore quotes what the plan's literals took from
    the question, and a plan that took nothing from it does not tell what was asked: the task does
    not apply. The answer is the annotated question, one of those that are right.
    """
    evolved = subject.evolved
    quoted = _quoted(evolved)
    if not quoted:
        return None
    shown = ", ".join(json.dumps(text, ensure_ascii=False) for text in quoted)
    instruction = f"{rng.choice(WORDINGS['query'])} {WORDINGS['quoted'].format(shown)}"
    prompt = _prompt(
        subject, WORDINGS["query_role"], instruction, f"Plan:\n{evolved.plan}\nQuestion:"
    )
    return Posed(prompt, evolved.query.query)


def _quoted(evolved: Evolved) -> list[str]:
    question = evolved.query.query
    texts = [text for _, _, text in text_literals(evolved.plan)]
    return [text for text in dict.fromkeys(texts) if is_span(text, question)]


def identify_tools(subject: Subject, rng: random.Random) -> Posed | None:
    """Identify the tools that the plan calls, each once, in the order of the toolbox.

    That order is asked for since steps that do not need each other have none of their own.
    """
    evolved = subject.evolved
    instruction = f"{rng.choice(WORDINGS['tools'])} {WORDINGS['tools_form']}"
    asked = f"Question: {evolved.query.query}\nTools:"
    names = [name for name in evolved.request.toolbox.names if name in set(evolved.plan.tools)]
    return Posed(_prompt(subject, WORDINGS["tools_role"], instruction, asked), ", ".join(names))


def _prompt(subject: Subject, role: str, instruction: str, asked: str) -> Prompt:
    tail = "\n\n".join(filter(None, (instruction, subject.context, asked)))
    return Prompt(shared_head(subject.evolved.request.toolbox, role), tail)
