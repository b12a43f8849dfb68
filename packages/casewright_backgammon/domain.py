"""The domain backgammon: a board's picture and a roll become a checked analysis (MCBR-RAG)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, cast, get_args

from casewright_backgammon.analysis import STEP
from casewright_backgammon.answerer import BoardAnswerer
from casewright_backgammon.board_layout import Colour, Home
from casewright_backgammon.board_reader import shipped_reader
from casewright_backgammon.case_base import case_file
from casewright_backgammon.cases import decision_case, decision_schema
from casewright_backgammon.decision import read_decisions
from casewright_backgammon.judge import default_judge
from casewright_backgammon.latent import FILE, shipped_network
from casewright_backgammon.lines import lines_of, told_of
from casewright_backgammon.page import page_of
from casewright_backgammon.play_text import dice_of
from casewright_backgammon.position import Position, position_of_id
from casewright.domains.build import digest, open_built
from casewright.domains.domain import Domain, OpenDomain
from casewright.domains.own_answer import IMAGE_OPTIONS, Option, OwnAnswer, OwnRequest
from casewright.errors import InputError
from casewright.planner import AnnotatedQuery, plan_schema
from casewright.planner.plan_cases import plan_case
from casewright.stores import Binary, Case, CaseStore, Encoder
from casewright.tools import Toolbox, ToolExample, tool_from_function

#: What makes cases of decisions: other cases, where one of these changes.
MAKERS = (
    "analysis.py",
    "analysis_phrases.py",
    "cases.py",
    "decision.py",
    "domain.py",
    "encoding.py",
    "latent.py",
    "play_features.py",
)
#: Questions with their plans; the domain has one tool.
QUERIES = (
    "What is the best play with 3-1 in the position 4HPwATDgc/ABMA?",
    "How should I play 5-2 in 4PPgASjgc/ABMA?",
    "Position 4PPBASLg8+ABJA, roll 6-4: what would you play?",
    "In mLeDATCwZ+QRIA I rolled 6-1. Is 16/9 right?",
)
OPTIONS = (
    *IMAGE_OPTIONS,
    Option("roll", "With a board's image: the dice, such as 3-1.", "DICE"),
    Option(
        "move",
        'The play to be judged, such as "16/13 2/1"; without it, the best is sought.',
        "PLAY",
    ),
    Option(
        "checkers",
        "Those of the player on roll, who sits below: light (as by default) or dark.",
        "WHICH",
    ),
    Option("home", "Where that player bears off: right (as by default) or left.", "SIDE"),
    Option(
        "off",
        "Checkers that the player on roll and the opponent have borne off, such as 2-0, where the "
        "picture alone leaves it open.",
        "N-N",
    ),
)
#: Ten bytes in base64, so that the last character has two bits.
_ID = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{13}[AQgw](?![A-Za-z0-9+/])")
_ROLL = re.compile(r"(?<![\d/])([1-6])\s*[-–:]\s*([1-6])(?![\d/])")
_MOVE = re.compile(rf"{STEP}(?:,? +{STEP})*", re.IGNORECASE)


def open_backgammon(folder: Path, encoder: Encoder, anew: bool = False) -> OpenDomain:
    """Open the stores in a folder, building them where needed.

    Raises:
        InputError: The networks or the case base that ship are not there.
    """

    def read(image: bytes) -> Position:
        return shipped_reader().read(image).position

    parts = {
        "backgammon": (decision_schema(read, shipped_network()), decision_cases),
        "plans": (plan_schema(encoder), lambda: [plan_case(query) for query in queries()]),
    }
    made_of = [
        *(files("casewright_backgammon") / name for name in MAKERS),
        case_file(),
        FILE,
    ]
    wanted = digest(made_of, [schema for schema, _ in parts.values()])
    stores = open_built(folder, "backgammon", wanted, parts, anew=anew)
    return OpenDomain(backgammon_toolbox(stores["backgammon"]), stores["plans"], stores)


def decision_cases() -> list[Case]:
    """Return the decisions of the case file as cases; of those with one candidate, none is learned.

    Raises:
        InputError: The file cannot be read, or a line is no decision; names the line.
    """
    known = read_decisions(case_file())
    return [decision_case(one) for one in known if len(one.candidates) > 1]


def backgammon_toolbox(store: CaseStore) -> Toolbox:
    """Return the domain's one tool."""

    def analyse_position(query: str) -> list[dict[str, Any]]:
        position, roll = _ID.search(query), _ROLL.search(query)
        if position is None or roll is None:
            raise InputError(
                "A question about backgammon needs a position id of GNU Backgammon and a roll. "
                f"For example: {QUERIES[0]}"
            )
        rest = query.replace(position[0], " ")
        move = _MOVE.search(rest)
        network = shipped_network()
        found = BoardAnswerer(store, network, default_judge(network)).answer(
            position_of_id(position[0]),
            dice_of(roll[0].replace("–", "-")),
            move[0].replace(",", "") if move else None,
        )
        told = [line for line in lines_of(found) if not line.startswith(("Read", "Roll"))]
        # The checked analysis first, then the advice, then the cases that it was made by.
        return [{"evidence": line} for line in sorted(told, key=_rank)]

    return Toolbox(
        [
            tool_from_function(
                analyse_position,
                description="Analyses a backgammon decision by like cases, and checks the advice.",
                results=("evidence",),
                example=ToolExample(QUERIES[0], "s1 = analyse_position(query=question)"),
            )
        ]
    )


def queries() -> list[AnnotatedQuery]:
    """Return the annotated queries."""
    return [
        AnnotatedQuery.read(
            {
                "id": f"backgammon-{number}",
                "query": query,
                "plan": "s1 = analyse_position(query=question)",
                "class": "analyse_position",
            }
        )
        for number, query in enumerate(QUERIES)
    ]


def answer_board(opened: OpenDomain, request: OwnRequest) -> OwnAnswer:
    """Answer a board; what the engine analysed becomes a case where it is to be retained.

    Raises:
        InputError: The image cannot be read or shows no board or an impossible position, the roll
            is missing, or the move illegal; nothing is retained then.
        ToolError: The engine failed.
    """
    image, details = request.image, request.options
    if "roll" not in details:
        raise InputError("A board needs a roll. Add it, for example: --roll 3-1")
    dice = dice_of(details["roll"])
    reading = shipped_reader().read(
        image,
        own=cast(Colour, _one_of(details, "checkers", get_args(Colour))),
        home=cast(Home, _one_of(details, "home", get_args(Home))),
        off=_off(details.get("off")),
    )
    network = shipped_network()
    answerer = BoardAnswerer(
        opened.stores["backgammon"],
        network,
        default_judge(network),
        request.chat,
        request.name,
    )
    data = image.read_bytes()
    found = answerer.answer(
        reading.position,
        dice,
        details.get("move"),
        picture=Binary(_media_type(image), data),
        retain="retain" in details,
    )
    told = {"confidence": reading.confidence, **told_of(found)}
    lines = lines_of(found)
    lines[0] += f" ({reading.confidence:.3f} sure)"
    page = page_of(found, data)
    return OwnAnswer(lines, told, page, found.advice.good).save_page(request)


def _one_of(details: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """Return what is told, the first of the known where nothing is."""
    told = details.get(name, known[0])
    if told not in known:
        raise InputError(f"--{name} {told!r:.40} is not one of {', '.join(known)}.")
    return told


def _off(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,2})\s*[-,]\s*(\d{1,2})\s*", text)
    if found is None:
        raise InputError(
            f"--off {text!r:.40} is no pair of numbers. Give how many checkers the player on roll "
            "and the opponent have borne off, such as 2-0."
        )
    return int(found[1]), int(found[2])


def _media_type(image: Path) -> str:
    from PIL import Image

    with Image.open(image) as opened:
        return opened.get_format_mimetype() or "image/png"


def _rank(line: str) -> tuple[bool, bool]:
    return line.startswith("Case"), not line.startswith(("Check", "Analysis"))


DOMAIN = Domain(
    name="backgammon",
    description="A board's picture and a roll; the best play and why, by analysed decisions.",
    questions=QUERIES[:2],
    open=open_backgammon,
    queries=queries,
    options=OPTIONS,
    answer=answer_board,
)
