"""The first half of Tool Evolve: which tools a prompt shows, and under what names."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from casewright.finetune.examples.renaming import RenameShares, Renaming, draw_renaming
from casewright.finetune.examples.tevo_settings import TevoSettings
from casewright.finetune.tool_pools import ToolPool, named_tools
from casewright.planner import AnnotatedQuery
from casewright.tools import NO_EVIDENCE, Toolbox, ToolSpec, tool_from_record


@dataclass(frozen=True, slots=True)
class DrawnToolbox:
    """Tools that were drawn, before their words and examples are.

    Attributes:
        own: The tools under their own names, in the order in which they are shown.
        changed: Whether anything may differ from what serving shows.
    """

    own: Toolbox
    names: Renaming
    changed: bool


def draw_toolbox(
    founders: Sequence[AnnotatedQuery],
    toolbox: Toolbox,
    settings: TevoSettings,
    pools: Mapping[str, ToolPool],
    rng: random.Random,
    *,
    distractors: Sequence[ToolSpec] = (),
) -> DrawnToolbox:
    """Draw the tools for the queries that found a toolbox, mostly one.

    Args:
        founders: The first one's record may change the toolbox in any way, the others' may add
            tools; all that their plans need is drawn.
        pools: Other names by tool; a tool without one keeps its own.

    Raises:
        InputError: A record's request is unusable; see ``QueryRecord.request``.
        ToolError: Two founders add different tools of one name.
    """
    asked = founders[0].record.request(toolbox).toolbox
    for other in founders[1:]:
        added = map(tool_from_record, other.record.tools_extra)
        asked = asked.with_(*(t for t in added if t.name not in asked or asked[t.name] != t))
    if not settings.enabled or rng.random() < settings.unchanged:
        return DrawnToolbox(asked, Renaming(), changed=False)
    tools = _subset({name for query in founders for name in query.plan.tools}, asked, settings, rng)
    free = [t for t in distractors if t.name not in toolbox and t.name not in asked]
    tools += rng.sample(free, rng.randint(0, min(settings.distractors, len(free))))
    rng.shuffle(tools)
    # Where serving has it, unless it is told otherwise.
    tools.append(asked[NO_EVIDENCE.name])
    shares = RenameShares(
        settings.rename_tools, settings.rename_parameters, settings.rename_results
    )
    # A name that another tool's description says cannot change there.
    named = {name for tool in tools for name in _named(tool, asked.names)}
    names = draw_renaming(tools, pools, shares, rng, fixed=sorted(named))
    return DrawnToolbox(Toolbox(tools), names, changed=True)


def _subset(
    called: Collection[str], toolbox: Toolbox, settings: TevoSettings, rng: random.Random
) -> list[ToolSpec]:
    """Return the tools that plans call, and a random subset of the others."""
    needed = {*called, NO_EVIDENCE.name}
    others = [name for name in toolbox.names if name not in needed]
    if rng.random() < settings.drop_tools:
        others = rng.sample(others, rng.randint(0, len(others)))
    kept = {*needed, *others}
    # A tool that another's description names comes with it.
    while (
        missing := {
            name
            for tool in kept
            if tool in toolbox
            for name in _named(toolbox[tool], toolbox.names)
        }
        - kept
    ):
        kept |= missing
    return [tool for tool in toolbox if tool.name in kept and tool.name != NO_EVIDENCE.name]


def _named(tool: ToolSpec, names: Sequence[str]) -> list[str]:
    texts = [tool.description, *(parameter.description for parameter in tool.parameters)]
    others = [name for name in names if name != tool.name]
    return [name for text in texts if text for name in named_tools(text, others)]
