"""Joins annotated messages for one toolbox into longer messages with several sub-queries.

Most hand-written messages have one sub-query. Training on joined messages lets a model generalise
to compositions (compare GECA, Andreas 2020, and COG, Qiu et al. 2022).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from casewright.finetune.neighbours import present_fields
from casewright.planner import AnnotatedQuery, Plan
from casewright.planner.plan import QuestionRef, Step
from casewright.tools import NO_EVIDENCE

#: Maximum number of steps in the plan of a joined message.
MAX_STEPS = 8
#: Maximum number of characters of a joined message.
MAX_CHARACTERS = 320
#: Templates that join two messages. The first template is listed twice to double its probability.
#: {0} and {1} are the two messages; {a} and {b} are the same without final punctuation marks.
JOIN_TEMPLATES = (
    "{0} {1}",
    "{0} {1}",
    "{0}\n{1}",
    "{a}, and {b}?",
    "{a} and {b}",
    "{a} and also {b}",
    "{0} Also, {b}.",
    "{0} And {b}?",
    "{a}; {b}",
    "{a}, {b}",
    "{a} - {b}",
    "{0} Oh, and {b}?",
    "{0} One more thing: {b}.",
    "Two things: {a}; {b}.",
    "1) {0} 2) {1}",
    "First {a}, then {b}.",
    "{a} as well as {b}",
    "{a} / {b}",
    "{0} While you are at it, {b}.",
    "hi, {a}, plus {b}, thanks",
)
#: First words of a message that lose their capital if the message becomes {b} in a template.
_UNCAPITALISED_TEXT = """
a an all any are at can could did do does find for from get give have has how if in is it let list
look may my of on our please pull show tell the there this to was we were what whats when where
which who whose why will with would you your
"""
_UNCAPITALISED = frozenset(_UNCAPITALISED_TEXT.split())


def with_joined_queries(
    queries: Sequence[AnnotatedQuery], share: float, rng: random.Random
) -> list[AnnotatedQuery]:
    """Return all messages of a toolbox, a ``share`` (0 to 1) of them joined to twos and threes."""
    shuffled = rng.sample(queries, len(queries))
    sample = [query for query in shuffled if _is_composable(query)][: round(share * len(queries))]
    sampled_object_ids = set(map(id, sample))
    unsampled = [query for query in shuffled if id(query) not in sampled_object_ids]
    return [*unsampled, *_join_at_random(sample, rng)]


def joined_queries(
    queries: Sequence[AnnotatedQuery], count: int, rng: random.Random
) -> list[AnnotatedQuery]:
    """Join ``count`` random messages of one toolbox, and return only the joined messages."""
    candidates = [query for query in queries if _is_composable(query)]
    sample = rng.sample(candidates, min(count, len(candidates)))
    sampled_object_ids = set(map(id, sample))
    return [query for query in _join_at_random(sample, rng) if id(query) not in sampled_object_ids]


def _join_at_random(unused: list[AnnotatedQuery], rng: random.Random) -> Iterator[AnnotatedQuery]:
    """Yield the messages, joined two or three at a time if possible; this empties ``unused``."""
    while unused:
        query = unused.pop()
        partner_count = 1 if rng.random() < 0.85 else 2
        for _ in range(partner_count):
            partner = next((other for other in unused if _are_joinable(query, other)), None)
            if partner is not None:
                unused.remove(partner)
                query = _join(query, partner, rng.choice(JOIN_TEMPLATES))
        yield query


def _is_composable(query: AnnotatedQuery) -> bool:
    """Return True if the plan stays correct as a part of a joined message's plan."""
    argument_values = (value for step in query.plan.steps for _, value in step.arguments)
    passes_question = any(isinstance(value, QuestionRef) for value in argument_values)
    return not (passes_question or query.record.history or NO_EVIDENCE.name in query.plan.tools)


def _are_joinable(first: AnnotatedQuery, second: AnnotatedQuery) -> bool:
    """Return True if two messages have compatible contexts, and are short enough together."""
    contexts = [present_fields(message.record.context) for message in (first, second)]
    return (
        # Messages with different contexts are not joined, but one message may have no context.
        (contexts[0] == contexts[1] or not all(contexts))
        and len(first.plan.steps) + len(second.plan.steps) <= MAX_STEPS
        and len(first.query) + len(second.query) <= MAX_CHARACTERS
    )


def _join(first: AnnotatedQuery, second: AnnotatedQuery, template: str) -> AnnotatedQuery:
    texts = [first.query.strip(), second.query.strip()]
    first_text, second_text = (text.rstrip(" .?!;") for text in texts)
    # Removes the 's of "what's", but also the s of "is" and "this", which thus keep their capital.
    first_word = second_text.split(maxsplit=1)[0].casefold().rstrip(",'s") if second_text else ""
    if first_word in _UNCAPITALISED:
        second_text = second_text[0].lower() + second_text[1:]
    record = first.record.model_copy(
        update={
            "id": f"{first.record.id}+{second.record.id}",
            "query": template.format(*texts, a=first_text, b=second_text),
            "context": present_fields(first.record.context) | present_fields(second.record.context),
        }
    )
    # If both plans have the same step, the joined plan has this step once.
    steps: list[Step] = list(first.plan.steps)
    joined_number_of: dict[int, int] = {}
    for number, step in enumerate(second.plan.steps, 1):
        renumbered = step.renumbered(joined_number_of)
        if renumbered not in steps:
            steps.append(renumbered)
        joined_number_of[number] = steps.index(renumbered) + 1
    return AnnotatedQuery(record, Plan(tuple(steps)), first.label)
