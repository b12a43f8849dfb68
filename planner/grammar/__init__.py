"""The grammar of plans: what a model can write is a valid plan."""

from casewright.planner.grammar.matcher import PlanMatcher
from casewright.planner.grammar.plan_grammar import DONE, PlanGrammar

__all__ = ["DONE", "PlanGrammar", "PlanMatcher"]
