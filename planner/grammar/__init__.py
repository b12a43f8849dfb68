"""The grammar of plans, with which a model can write only valid plans."""

from casewright.planner.grammar.matcher import PlanMatcher
from casewright.planner.grammar.plan_grammar import DONE, PlanGrammar

__all__ = ["DONE", "PlanGrammar", "PlanMatcher"]
