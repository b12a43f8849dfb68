"""Constraints on the tools of a plan, verified on its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casewright.errors import PlanError
from casewright.planner import parse_plan


def only_tools(given: Mapping[str, Any], question: str, answer: str) -> bool:
    """Say whether a plan calls none but ``given["tools"]``."""
    return (used := _tools(answer)) is not None and all(tool in given["tools"] for tool in used)


def without_tool(given: Mapping[str, Any], question: str, answer: str) -> bool:
    """Say whether a plan does not call ``given["tool"]``."""
    return (used := _tools(answer)) is not None and given["tool"] not in used


def _tools(answer: str) -> tuple[str, ...] | None:
    try:
        return parse_plan(answer).tools
    except PlanError:
        return None
