"""Following instructions: does a planner use only the tools that it is given?

REAPER (Joshi et al. 2024) measures it: a tool that the gold plan uses is taken out of the toolbox,
and the question is asked again. Under a grammar of the toolbox, or where every plan is checked
before it is returned, no other tool can be named: the score is 1.00 by construction and says
nothing of the model. So planners with a language model are asked with the grammar off.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from casewright.finetune.evaluation.asking import Answered
from casewright.finetune.evaluation.item import EvaluationItem
from casewright.finetune.evaluation.named_tools import named_tools


def with_a_tool_removed(items: Sequence[EvaluationItem], seed: int = 0) -> list[EvaluationItem]:
    """Return each question without one of the tools that its gold plan uses, drawn at random.

    Left out are questions whose gold plan looks nothing up: ``no_evidence`` is in every toolbox.
    """
    draw = random.Random(seed)
    return [item.without(draw.choice(item.removable)) for item in items if item.removable]


def only_provided(item: EvaluationItem, answered: Answered) -> bool:
    """Say whether a planner used the tools that it was given, and no others.

    One that raised, named no tool, or had to be stood in for without a word of what it wrote did
    not.
    """
    if answered.result is None:
        return False
    named = named_tools(answered.result)
    return bool(named) and all(tool in item.request.toolbox for tool in named)
