"""The RepoGPT post's own loop: every round searches for k cases and judges all of them."""

from __future__ import annotations

from casewright.bench.feedback.runs import Run, State
from casewright.bench.feedback.sets import FeedbackQuestion
from casewright.graph.feedback.limits import estimated_tokens
from casewright.stores import Question
from casewright.stores.feedback import case_text

#: Rounds at most; the post has no bound of its own.
ROUNDS = 10
#: Cases that it fetches a round, until it finds as much as ours.
POST_KS = (10, 15, 20, 30, 40, 60)


def post_loop(question: Question, asked: FeedbackQuestion, k: int) -> tuple[Run, int]:
    """Run the post's loop with the labels as judge; return it, and how many it judged.

    The query of a round is the question followed by the texts of all that is relevant; what was
    judged before and is found again is judged again. It ends when the number of relevant cases did
    not grow.

    Args:
        question: The question, in the store.
        asked: It, with its labels.
        k: Cases that every search is to find.
    """
    relevant: dict[str, str] = {}
    seen: dict[str, None] = {}
    states: list[State] = []
    judged = tokens = 0
    found = question.best(k)
    while True:
        judged += len(found)
        texts = {one.hit.case.id: case_text(one.hit.case) for one in found}
        tokens += estimated_tokens(question.text, *texts.values())
        seen |= dict.fromkeys(texts)
        before = len(relevant)
        relevant |= {id_: text for id_, text in texts.items() if id_ in asked.relevant}
        states.append(State(list(seen), frozenset(relevant)))
        if len(relevant) == before or len(states) == ROUNDS:
            return Run(states, tokens), judged
        query = "\n".join([question.text, *relevant.values()])
        found = question.nearest(question.embed([query]), k)
