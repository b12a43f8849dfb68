"""The picture of the graph shows the nodes and edges of the graphs that are compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from casewright.graph import build_graph
from casewright.graph.feedback import build_feedback
from casewright.planner import parse_plan
from casewright.planner.fixed import FixedPlanner
from casewright.stores import CaseSchema, CaseStore, text_facet
from casewright.stores.feedback import OfflineJudge
from casewright.tools import Toolbox
from tests.support.encoders import HashingEncoder

FILE = Path(__file__).parents[2] / "docs" / "pictures" / "graph.svg"
PICTURE = ElementTree.fromstring(FILE.read_text(encoding="utf-8"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def compiled() -> Iterator[dict[str, Any]]:
    """Yield both graphs as LangGraph draws them, by their names in the picture."""
    schema = CaseSchema("pictured", (text_facet("text", HashingEncoder()),))
    with CaseStore(schema, ":memory:") as store:
        question_graph = build_graph(Toolbox([]), FixedPlanner(parse_plan("s1 = no_evidence()")))
        feedback_graph = build_feedback(store, OfflineJudge())
        yield {"casewright": question_graph.get_graph(), "feedback": feedback_graph.get_graph()}


def part(name: str) -> ElementTree.Element:
    """Return the part of the picture that is about one graph."""
    (element,) = PICTURE.findall(f".//{SVG}g[@data-graph='{name}']")
    return element


def attribute_values(name: str, attribute: str) -> list[str]:
    return sorted(node.attrib[attribute] for node in part(name).iter() if attribute in node.attrib)


@pytest.mark.parametrize("name", ["casewright", "feedback"])
def test_graph_picture_has_exactly_the_nodes_of_the_compiled_graph(
    compiled: dict[str, Any], name: str
) -> None:
    assert attribute_values(name, "data-node") == sorted(compiled[name].nodes)


@pytest.mark.parametrize("name", ["casewright", "feedback"])
def test_graph_picture_has_exactly_the_edges_of_the_compiled_graph(
    compiled: dict[str, Any], name: str
) -> None:
    edges = sorted(f"{edge.source} {edge.target}" for edge in compiled[name].edges)
    assert attribute_values(name, "data-edge") == edges


@pytest.mark.parametrize("name", ["casewright", "feedback"])
def test_label_of_a_picture_node_is_the_name_of_the_graph_node(name: str) -> None:
    for node in part(name).iter():
        label = node.attrib.get("data-node", "__")
        if not label.startswith("__"):
            assert label in [text.text for text in node.iter(f"{SVG}text")]


def test_graph_picture_has_a_description_and_light_and_dark_colours() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert FILE.stat().st_size < 15_000
    for name in ("title", "desc"):
        (element,) = PICTURE.findall(f"{SVG}{name}")
        assert (element.text or "").strip()
        assert element.attrib["id"] in PICTURE.attrib["aria-labelledby"].split()
    assert "prefers-color-scheme: dark" in text
    assert "viewBox" in PICTURE.attrib
    assert not PICTURE.findall(f".//{SVG}image")
    # A colour that one scheme does not define would be invisible there.
    schemes = re.findall(r"svg \{([^}]*)\}", text)
    light, dark = (set(re.findall(r"(--\w+):", scheme)) for scheme in schemes)
    assert light == dark == set(re.findall(r"var\((--\w+)\)", text))
