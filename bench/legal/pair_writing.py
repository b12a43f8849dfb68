"""Writing the test questions that ``bench legal`` reads beside ALQA's cases."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from casewright.bench.legal.data import FEWEST, SHIPPED
from casewright.domains.legal import entity_pairs, read_alqa, read_with_chat, write_questions
from casewright.domains.legal.alqa import is_dataset
from casewright.domains.legal.data import data_file
from casewright.domains.legal.question_pairs import cited_as
from casewright.errors import CasewrightError, InputError
from casewright.stores.progress import note

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, slots=True)
class PairsWritten:
    """What came of writing questions.

    Attributes:
        output: The file.
        cases: How many were read.
        cases_left_out_as_others_are_cited_alike: How many of them.
        pairs: How many pairs the model was asked about.
        questions: How many questions were written.
        skipped: Why a pair has none, to how many pairs that befell.
    """

    output: str
    cases: int
    cases_left_out_as_others_are_cited_alike: int
    pairs: int
    questions: int
    skipped: Mapping[str, int]


def check_pairs_output(output: Path, source: str) -> None:
    """Look whether the questions can be written to a file, before what takes long; change nothing.

    Raises:
        InputError: It is the file that the cases are read from, or cannot be written.
    """
    read = [Path(str(data_file(name))) for name in ("cases", "pairs")]
    if source != SHIPPED and not is_dataset(source):
        read.append(Path(source))
    try:
        if output.exists() and any(output.samefile(file) for file in read if file.exists()):
            raise InputError(f"--output {output} is a file of the data. Choose another.")
        if output.exists():
            with output.open("ab"):
                pass
        else:
            with TemporaryFile(dir=output.absolute().parent):
                pass
    except OSError as error:
        raise _unwritable(output, error) from error


def write_pairs(
    source: str,
    output: Path,
    model: BaseChatModel,
    *,
    pairs: int = 50,
    seed: int = 0,
    extractor: BaseChatModel | None = None,
    progress: bool | None = True,
) -> PairsWritten:
    """Have a chat model write questions that two cases answer together (CBR-RAG, section 6.1).

    The file is JSON Lines: id, question, answer, parents, shared. A case whose citation others have
    too is in no pair: a question could not say which of them is its parent.

    Raises:
        InputError: The source cannot be read, no cases share a name, or the output cannot be
            written.
        DependencyError: The source is a name, and ``datasets`` is not installed.
        CasewrightError: The model wrote no usable question.
    """
    check_pairs_output(output, source)
    place = str(data_file("cases")) if source == SHIPPED else source
    if extractor is None:
        cases = read_alqa(place)
    else:
        cases = read_with_chat(place, extractor, progress=progress)
    cited = Counter(map(cited_as, cases))
    told_apart = [case for case in cases if cited[cited_as(case)] == 1]
    drawn = entity_pairs(told_apart, limit=pairs, seed=seed)
    if not drawn:
        raise InputError(
            f"{source}: no two of its {len(cases)} cases share an Act or another name, so there is "
            "nothing to ask about."
        )
    written = write_questions(drawn, model, progress=progress)
    if not written.questions:
        why = "; ".join(f"{reason} ({count})" for reason, count in written.skipped.items())
        raise CasewrightError(
            f"The chat model wrote no usable question for {len(drawn)} pairs: {why}. {output} was "
            "not written."
        )
    lines = [json.dumps(one.to_json(), ensure_ascii=False) for one in written.questions]
    try:
        output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(output, error) from error
    if len(lines) < FEWEST:
        note(f"bench legal needs {FEWEST} questions at least; these are {len(lines)}.")
    left_out = len(cases) - len(told_apart)
    return PairsWritten(
        str(output), len(cases), left_out, len(drawn), len(lines), dict(written.skipped)
    )


def _unwritable(output: Path, error: OSError) -> InputError:
    return InputError(
        f"--output {output} cannot be written: {error.strerror}. Give a file in a folder that "
        "exists and that you may write to."
    )
