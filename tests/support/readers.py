"""A small reader for tests, trained in seconds for the toy shop of ``tests/planner/helpers``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewright.finetune.evaluation import plan_class
from casewright.finetune.reader_training import ReaderSettings, train_reader
from casewright.planner import AnnotatedQuery, Reader, parse_plan
from casewright.planner.reader_weights import ReaderCard, save_reader

if TYPE_CHECKING:
    from casewright.planner.reader_network import ReaderNetwork

THINGS = (
    *("wool socks", "garden chairs", "red kettle", "old tent", "radio", "head torch"),
    *("camping stove", "blue curtains", "desk lamp", "bread knife", "yoga mat", "bike pump"),
    *("winter boots", "chess set"),
)
TRAITS = ("heavy", "loud", "bright", "waterproof", "wide", "expensive")
TOWNS = ("Bonn", "Lyon", "Porto", "Leeds", "Graz", "Turin", "Ghent", "Malmö", "Brno", "Split")
COLOURED = ("red", "green", "black", "grey", "pink")
WEATHERS = ("is it going to rain in {}?", "how will the weather be in {}", "is there sun in {}")
TRAIN_TIMES = ("next train to {} please", "when can I catch a train to {}", "trains to {} today")
SEARCHES = ("do you sell {}", "I am looking for {}", "show me some {}", "got any {}?")
OWNED = ("how {1} is my {0}", "is my {0} {1}?", "the {0} I bought, is it {1}")
PAGES = ("is it {}", "how {} is this one?", "would you call it {}")
POLICIES = (
    *("can I return something after a month", "how do I get my money back", "what is a refund"),
    *("do you accept opened boxes", "how long does a return take", "who pays for returns"),
    *("can I pay by invoice", "what does shipping cost", "do you deliver abroad"),
    *("how long is the warranty", "is there a student discount", "when do I get my refund"),
)
TALK = ("hello there", "good morning", "thanks a lot", "you are great", "bye now", "who are you")


def own_tool(name: str, parameter: str, description: str, query: str, plan: str) -> dict[str, Any]:
    """Return a tool of one record, in the format of the field ``tools_extra``."""
    return {
        "name": name,
        "parameters": {parameter: ""},
        "results": ["evidence"],
        "description": description,
        "example": {"query": query, "plan": plan},
    }


WEATHER = own_tool(
    *("weather_report", "place", "The weather forecast of a town."),
    *("will it rain in Bonn tomorrow", 's1 = weather_report(place="Bonn")'),
)
TRAINS = own_tool(
    *("train_times", "town", "When trains leave for a town."),
    *("when does the next train to Lyon leave", 's1 = train_times(town="Lyon")'),
)
COLOURS = own_tool(
    *("other_colours", "item_id", "In which other colours a product comes."),
    *("does it come in another colour", "s1 = other_colours(item_id=context.product_id)"),
)
POINTS = own_tool(
    *("points_worth", "amount", "What bonus points are worth."),
    *("what are 300 bonus points worth", "s1 = points_worth(amount=300)"),
)


def bare(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the tool without its example."""
    return {name: value for name, value in tool.items() if name != "example"}


def _rows() -> Iterator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    """Yield the query, plan, context and extra tools of each record."""
    for n, item in enumerate(THINGS):
        trait = TRAITS[n % len(TRAITS)]
        other = THINGS[(n + 7) % len(THINGS)]
        searched = f's1 = find(query="{item}")'
        owned = f's1 = own(query="{item}")\ns2 = fact(item_id=s1.item_id, query=question)'
        fact = "s1 = fact(item_id=context.product_id, query=question)"
        page = {"product_id": f"p{n}"}
        distractor = [bare(TRAINS), COLOURS, POINTS, bare(WEATHER)][n % 4]
        yield SEARCHES[n % 4].format(item), searched, {}, [distractor]
        yield SEARCHES[(n + 1) % 4].format(item), searched, {}, []
        yield OWNED[n % 3].format(item, trait), owned, {}, []
        yield OWNED[(n + 1) % 3].format(item, trait), owned, {}, []
        yield PAGES[n % 3].format(trait), fact, page, []
        for product, question in ((item, PAGES[n % 3]), (other, PAGES[(n + 1) % 3])):
            two_requests = f"{question.format(trait)} And do you sell {product}?"
            yield two_requests, f'{fact}\ns2 = find(query="{product}")', page, []
    for n, town in enumerate(TOWNS):
        rain, train = WEATHERS[n % 3].format(town), TRAIN_TIMES[n % 3].format(town)
        weather = WEATHER if n % 2 else bare(WEATHER)
        yield rain, f's1 = weather_report(place="{town}")', {}, [weather]
        yield train, f's1 = train_times(town="{town}")', {}, [TRAINS, WEATHER]
        if n < 5:
            page = {"product_id": f"p{n}"}
            colour = f"do you have this in {COLOURED[n]}"
            yield colour, "s1 = other_colours(item_id=context.product_id)", page, [COLOURS]
            points = f"how much are {n + 2}00 points worth to me"
            yield points, f"s1 = points_worth(amount={n + 2}00)", {}, [POINTS, TRAINS]
    for question in POLICIES:
        yield question, "s1 = desk(query=question)", {}, []
    for question in TALK:
        yield question, "s1 = no_evidence()", {}, []


def toy_queries() -> list[AnnotatedQuery]:
    """Return annotated queries with one or two requests, with and without a product page.

    Some have tools of their own.
    """
    return [
        AnnotatedQuery.read(
            {
                "id": f"t{i}",
                "query": query,
                "plan": plan,
                "class": plan_class(parse_plan(plan)),
                "context": context,
                "tools_extra": extra,
            }
        )
        for i, (query, plan, context, extra) in enumerate(_rows())
    ]


def quick(epochs: int = 4, seed: int = 0) -> ReaderSettings:
    """Return settings that train in seconds."""
    return ReaderSettings(
        epochs=epochs,
        rank=8,
        lora_rate=3e-3,
        head_rate=2e-3,
        distracted=0.3,
        warm_up=6,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained reader with its training data and files.

    Attributes:
        queries: The training queries.
        network: The trained network.
        card: The reader's metadata.
        folder: The folder of the saved reader.
        reader: The reader, loaded from this folder.
    """

    queries: list[AnnotatedQuery]
    network: ReaderNetwork
    card: ReaderCard
    folder: Path
    reader: Reader


def train(
    queries: Sequence[AnnotatedQuery], settings: ReaderSettings
) -> tuple[ReaderNetwork, ReaderCard]:
    """Return a network that was trained on one thread, and its card."""
    import torch

    # On busy cores, two threads that wait for each other take ten times as long.

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return train_reader(queries, settings, progress=False)
    finally:
        torch.set_num_threads(threads)


def train_and_save(folder: Path) -> Trained:
    """Train a reader on the toy queries and save it; return the reader with its training."""
    queries = toy_queries()
    network, card = train(queries, quick())
    save_reader(folder / "reader", network, card)
    return Trained(queries, network, card, folder / "reader", Reader(folder / "reader"))


def untrained(folder: Path) -> Reader:
    """Save and return a reader with the same templates whose network was not trained."""
    save_reader(folder, *train(toy_queries(), quick(epochs=0)))
    return Reader(folder)
