"""Secondary tasks that read a plan or a question, and write no plan."""

from __future__ import annotations

import json
import random

from casewright.finetune.examples.heads import shared_head
from casewright.finetune.examples.secondary import Posed, Subject
from casewright.finetune.examples.tevo import Evolved
from casewright.planner import Prompt, is_span
from casewright.planner.literals import text_literals

QUERY_ROLE = """\
You read look-up plans of a question-answering assistant. A plan is the calls of tools that fetch \
all the evidence needed to answer a user's question."""

_QUERY_WORDINGS = (
    "Below is a plan. Write a question that a user may have asked and that this plan is for.",
    "What did the user ask? Write a question to which the plan below fetches the evidence.",
    "Read the plan and write the user's message that it was made for, as a user would put it.",
    "The message that this plan answers was lost. Write one that fits it.",
    "Somebody wrote a message to the assistant, which made this plan for it. Write that message.",
)
_QUOTED = "Use these words in it: {}."

TOOLS_ROLE = """\
You choose the tools of a question-answering assistant: those that fetch all the evidence needed \
to answer the question, and no others. You neither plan their calls nor answer the question."""

_TOOLS_WORDINGS = (
    "Which of the tools are needed for this question?",
    "Name the tools that a plan for this question calls.",
    "List the tools with which the evidence for this question is looked up.",
    "What tools does it take to find the evidence for the question below?",
    "Choose the tools for this question, no more than it needs.",
)
_TOOLS_FORM = (
    "Write each name once, in the order in which the tools are listed above, with commas between "
    "them."
)


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
    tail = "\n\n".join(
        (
            f"{rng.choice(_QUERY_WORDINGS)} {_QUOTED.format(shown)}",
            subject.context,
            f"Plan:\n{evolved.plan}\nQuestion:",
        )
    )
    prompt = Prompt(shared_head(evolved.request.toolbox, QUERY_ROLE), tail)
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
    needed = set(evolved.plan.tools)
    tail = "\n\n".join(
        (
            f"{rng.choice(_TOOLS_WORDINGS)} {_TOOLS_FORM}",
            subject.context,
            f"{subject.question}\nTools:",
        )
    )
    names = [name for name in evolved.request.toolbox.names if name in needed]
    return Posed(Prompt(shared_head(evolved.request.toolbox, TOOLS_ROLE), tail), ", ".join(names))
