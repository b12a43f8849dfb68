"""A toy shop with a rare shape of plans, and a recipe that trains in seconds."""

from __future__ import annotations

from casewright.planner import AnnotatedQuery
from tests.support.readers import THINGS, toy_queries

RECIPE = """
[data]
domain = "toy"
validation = 0.1
[data.sampling]
method = "dqs"
size = 48
initial = 0.2
[data.tevo]
shots = 1
[model.new]
hidden = 16
layers = 1
heads = 2
kv_heads = 1
intermediate = 32
vocabulary = 700
[lora]
r = 4
[training]
steps = 50
learning_rate = 2e-2
batch_per_device = 4
log_steps = 1
"""


def query(number: int, text: str, plan: str, label: str) -> AnnotatedQuery:
    record = {"id": f"r{number}", "query": text, "plan": plan, "class": label}
    return AnnotatedQuery.read(record)


#: A second, rarer shape of plans with several steps, which can be held out.
BOTH = [
    query(
        number,
        f"Any {product} here? And may I bring it back?",
        f's1 = find(query="{product}")\ns2 = desk(query=question)',
        "multi_step",
    )
    for number, product in enumerate(THINGS)
]
#: Small talk, which needs no tool.
TALK = [
    query(200 + number, text, "s1 = no_evidence()", "no_evidence")
    for number, text in enumerate(
        (
            "morning clouds drift quietly above sleeping villages while roosters rehearse",
            "grandfather always whistled marching tunes during breakfast cleanup afterwards",
            "yesterday somebody painted purple elephants across every lamppost downtown",
            "winter evenings invite storytelling beside crackling fireplaces with cousins",
        )
    )
]
QUERIES = [*toy_queries(), *BOTH, *TALK]
FROZEN = [
    query(100, "Stock any violins", 's1 = find(query="violins")', "find"),
    query(101, "Good evening everybody", "s1 = no_evidence()", "no_evidence"),
    query(102, "Until when may I send a thing back", "s1 = desk(query=question)", "desk"),
]
