from __future__ import annotations

import random
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from casewright.finetune.examples.tevo import Renaming, TevoSettings, ToolNames, draw_renaming
from casewright.finetune.tool_pools import ParameterPool, ToolPool
from casewright.planner import ListValue, Plan, Step, StepRef, parse_plan, violations
from casewright.tools import Parameter, Source, Toolbox, ToolSpec
from tests.planner.helpers import SHOP, parameter
from tests.planner.strategies import SCALARS, SENTENCES
from tests.support.examples import at_most

ALL = TevoSettings(rename_tools=1, rename_parameters=1, rename_results=1)
NONE = TevoSettings(rename_tools=0, rename_parameters=0, rename_results=0)
NAMES = st.from_regex(r"[a-c]{1,2}_?[A-C]?", fullmatch=True).filter(lambda name: name != "")
TOOLS = [tool for tool in SHOP if tool.name != "no_evidence"]


@st.composite
def pools(draw: st.DrawFn) -> dict[str, ToolPool]:
    """Draw pools of so few names that they clash within and between tools."""
    renames = {}
    for tool in TOOLS:
        names = st.lists(NAMES, max_size=4).map(tuple)
        parameters = {p.name: ParameterPool(names=draw(names)) for p in tool.parameters}
        results = {result: draw(names) for result in tool.results}
        renames[tool.name] = ToolPool(names=draw(names), parameters=parameters, results=results)
    return renames


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Draw a plan of the shop's tools with its parameters, valid or not."""
    steps: list[Step] = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        tool = draw(st.sampled_from(TOOLS))
        scalars = SCALARS.filter(lambda value: not isinstance(value, StepRef))
        if number > 1:
            step = draw(st.integers(1, number - 1))
            fields = SHOP[steps[step - 1].tool].results
            scalars = scalars | st.builds(StepRef, st.just(step), st.sampled_from(fields))
        values = scalars | st.builds(ListValue, st.lists(scalars, max_size=3).map(tuple))
        arguments = [(p.name, draw(values)) for p in tool.parameters if draw(st.booleans())]
        steps.append(Step(tool.name, tuple(arguments)))
    return Plan(tuple(steps))


def inverse(names: Renaming) -> Renaming:
    """Return the renaming that restores the original names."""

    def inverted(mapping: Mapping[str, str]) -> dict[str, str]:
        return {new: original for original, new in mapping.items()}

    return Renaming(
        {
            renamed.new_name: ToolNames(
                tool, inverted(renamed.new_parameters), inverted(renamed.new_results)
            )
            for tool, renamed in names.names_by_tool.items()
        }
    )


@settings(max_examples=at_most(40), deadline=None)
@given(pools(), plans(), SENTENCES, st.integers(0, 99))
def test_renamed_plan_keeps_its_validity_and_can_be_renamed_back(
    renames: dict[str, ToolPool], plan: Plan, question: str, seed: int
) -> None:
    names = draw_renaming(list(SHOP), renames, ALL, random.Random(seed))
    box = Toolbox(names.rename_tool(tool) for tool in SHOP)
    renamed = names.rename_plan(plan)
    assert inverse(names).rename_plan(renamed) == plan
    context = {"product_id": "p1"}
    before = list(violations(plan, SHOP, question=question, context=context))
    after = list(violations(renamed, box, question=question, context=context))
    assert [error.step for error in after] == [error.step for error in before]


def test_renaming_leaves_texts_that_look_like_names_unchanged() -> None:
    names = Renaming(
        {
            "own": ToolNames("mine", {"query": "q"}, {"item_id": "sku"}),
            "fact": ToolNames("facts", {"item_id": "sku", "query": "item_id"}),
        }
    )
    plan = parse_plan(
        's1 = own(query="own s1.item_id query")\n'
        's2 = fact(item_id=s1.item_id, query="fact(item_id=s1.item_id)")\n'
        "s3 = fact(item_id=context.item_id, query=question)\n"
        's4 = other(query=[s1[1].item_id, "item_id", s2.evidence])'
    )
    assert str(names.rename_plan(plan)) == (
        's1 = mine(q="own s1.item_id query")\n'
        's2 = facts(sku=s1.sku, item_id="fact(item_id=s1.item_id)")\n'
        "s3 = facts(sku=context.item_id, item_id=question)\n"
        's4 = other(query=[s1[1].sku, "item_id", s2.evidence])'
    )
    assert inverse(names).rename_plan(names.rename_plan(plan)) == plan


def test_renamed_parameter_keeps_its_sources_choices_and_kind() -> None:
    """Sources that follow from the original name are not derived again from the new name."""
    tool = ToolSpec(
        "give",
        "",
        (
            Parameter("thing_id"),
            parameter("unit", choices=("celsius",), kind="string", required=False),
            Parameter("words"),
        ),
    )
    names = {"thing_id": "thing", "unit": "scale", "words": "words_id"}
    thing, scale, words = Renaming({"give": ToolNames("take", names)}).rename_tool(tool).parameters
    assert (thing.name, thing.sources) == ("thing", frozenset({Source.CONTEXT, Source.STEP}))
    assert (scale.choices, scale.kind, scale.required) == (("celsius",), "string", False)
    assert (words.name, Source.SPAN in words.sources) == ("words_id", True)


def test_draw_renaming_never_takes_the_name_of_another_tool() -> None:
    renames = {"find": ToolPool(names=("OWN", "fact", "desk_", "seek"))}
    for seed in range(20):
        names = draw_renaming(list(SHOP), renames, ALL, random.Random(seed))
        assert names.names_by_tool["find"].new_name == "seek"


def test_tool_keeps_its_name_if_no_other_name_is_free() -> None:
    names = draw_renaming(list(SHOP), {"find": ToolPool(names=("own",))}, ALL, random.Random(0))
    assert names.names_by_tool["find"].new_name == "find"


def test_no_evidence_and_fixed_tools_keep_their_names() -> None:
    renames = {name: ToolPool(names=(f"{name}_other",)) for name in ("no_evidence", "own", "desk")}
    names = draw_renaming(list(SHOP), renames, ALL, random.Random(0), fixed=["own"])
    assert {own: new.new_name for own, new in names.names_by_tool.items()} == {
        "no_evidence": "no_evidence",
        "own": "own",
        "desk": "desk_other",
    }


def test_equal_result_fields_of_tools_get_the_same_new_name() -> None:
    renames = {
        "find": ToolPool(results={"item_id": ("sku", "ref"), "title": ("label",)}),
        "own": ToolPool(results={"item_id": ("ref", "thing"), "title": ("name",)}),
    }
    for seed in range(10):
        names = draw_renaming(list(SHOP), renames, ALL, random.Random(seed))
        find, own = names.names_by_tool["find"].new_results, names.names_by_tool["own"].new_results
        assert find["item_id"] == own["item_id"] == "ref"
        # The pools of the two tools have no common name for titles.
        assert (find["title"], own["title"]) == ("label", "name")


def test_nothing_is_renamed_with_shares_of_zero() -> None:
    renames = {"find": ToolPool(names=("seek",), results={"title": ("label",)})}
    names = draw_renaming(list(SHOP), renames, NONE, random.Random(0))
    plan = parse_plan('s1 = find(query="x")\ns2 = find(query=s1.title)')
    assert names.rename_plan(plan) == plan
