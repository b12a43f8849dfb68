"""The command `casewright plan`, which writes plans without running them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli import options
from casewright.serve.cli.options import Flags, with_flags
from casewright.serve.cli.output import check_new_file, fail, print_json, visible

if TYPE_CHECKING:
    from casewright.planner import Planner, PlanRequest, PlanResult
    from casewright.tools import Toolbox

app = Typer(add_completion=False)


@app.command()
@with_flags("domain", "planner", "adapter", "device", "dtype")
def plan(
    flags: Flags,
    question: Annotated[str | None, Argument(help="The question.")] = None,
    source: Annotated[Path | None, Option("--input", help="A JSON Lines file of queries.")] = None,
    target: Annotated[
        Path | None, Option("--output", help="The file for the plans; stdout by default.")
    ] = None,
    context: options.ContextText = None,
    examples: options.Examples = None,
    grammar: options.Grammar = True,
    config: options.ConfigFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Write the plan of a question, or of every query in a file, without running it."""
    from casewright.planner.request import PlanRequest, check_question
    from casewright.serve.session.choice import read_chosen_parts
    from casewright.serve.session.option_values import read_context
    from casewright.serve.session.session import open_chosen

    if (question is None) == (source is None):
        raise InputError("Give either a question or --input FILE.")
    if question is not None:
        check_question(question)
    elif source is not None and not source.is_file():
        raise InputError(f"{source} is not a file. Give a JSON Lines file of queries.")
    if source is None and target is not None:
        raise InputError("--output goes with --input FILE. Give both, or leave --output out.")
    if source is not None and context is not None:
        raise InputError("--context goes with one question; a file has a context in each record.")
    if target is not None and source is not None and target.exists() and target.samefile(source):
        raise InputError("--output is the --input file. Choose another file to keep the queries.")
    check_new_file("--output", target)
    context_fields, chosen = read_context(context), read_chosen_parts(config, **flags)
    with closing(open_chosen(chosen, examples=examples, constrained=grammar)) as session:
        if source is not None:
            _plan_file(source, target, session.opened.toolbox, session.planner)
            return
        assert question is not None
        result = session.planner.plan(PlanRequest(question, session.opened.toolbox, context_fields))
    if as_json:
        texts = {"fallback": result.fallback or None, "written": result.written or None}
        record = {"id": None, **_result_fields(result), **texts, "error": None}
        print_json(record | result.doubt())
        return
    echo(str(result.plan))
    if result.fallback:
        echo(f"A fallback plan: {result.fallback}", err=True)
    from casewright.graph.answer import clarification

    if user_question := clarification(result.doubt()):
        echo(user_question, err=True)
    if result.written:
        echo(f"The planner wrote:\n{visible(result.written)}", err=True)


def _result_fields(result: PlanResult) -> dict[str, Any]:
    return {
        "plan": str(result.plan),
        "milliseconds": round(result.milliseconds, 3),
        "planner": result.planner,
        "attempts": result.attempts,
    }


def _plan_file(source: Path, target: Path | None, toolbox: Toolbox, planner: Planner) -> None:
    """Write a line with the plan of each record of a JSON Lines file, in the same order.

    The line of an invalid record has an empty plan. Its ``error`` says why the record is invalid.
    """
    try:
        lines = source.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}.") from error
    records = [line for line in lines if line.strip()]
    if target is None:
        invalid_count = _write_plans(records, sys.stdout, toolbox, planner)
    else:
        try:
            with target.open("w", encoding="utf-8", newline="\n") as file:
                invalid_count = _write_plans(records, file, toolbox, planner)
        except OSError as error:
            raise InputError(f"{target} cannot be written: {error.strerror}.") from error
    if invalid_count:
        fail(
            f"{invalid_count} of {len(records)} records could not be planned for; the "
            "error in their lines says why. The other records have plans."
        )


def _write_plans(records: list[bytes], file: IO[str], toolbox: Toolbox, planner: Planner) -> int:
    """Write a line for each record; return the number of invalid records."""
    from casewright.stores.progress import progress_bar

    invalid_count = 0
    with progress_bar("Planning", len(records)) as advance:
        for output_record in _plan_all(records, toolbox, planner):
            invalid_count += output_record["error"] is not None
            file.write(json.dumps(output_record, ensure_ascii=False) + "\n")
            advance(1)
    return invalid_count


def _plan_all(records: list[bytes], toolbox: Toolbox, planner: Planner) -> Iterator[dict[str, Any]]:
    """Yield the output record of each record; plan in batches if the planner can."""
    from casewright.planner.request import BatchPlanner

    batch_size = planner.batch if isinstance(planner, BatchPlanner) else 1
    for start in range(0, len(records), batch_size):
        batch = records[start : start + batch_size]
        pairs = [_read_request(line, toolbox, planner) for line in batch]
        requests = [request for _, request in pairs if request is not None]
        if isinstance(planner, BatchPlanner):
            results = iter(planner.plan_many(requests))
        else:
            results = iter([planner.plan(request) for request in requests])
        for output_record, request in pairs:
            if request is not None:
                result = next(results)
                output_record |= _result_fields(result) | result.doubt()
                output_record["planner"] += " (fallback)" if result.fallback else ""
            yield output_record


def _read_request(
    line: bytes, toolbox: Toolbox, planner: Planner
) -> tuple[dict[str, Any], PlanRequest | None]:
    """Return a line's output record with an empty plan, and its request (``None`` if invalid)."""
    from casewright.planner import QueryRecord

    output_record: dict[str, Any] = {"id": None, "plan": "", "milliseconds": 0.0}
    output_record |= {"planner": planner.name, "attempts": 0, "error": None, "confidence": None}
    output_record |= {"because": "", "asks_back": False, "alternatives": []}
    try:
        decoded = json.loads(line)
        output_record["id"] = _read_id(decoded)
        return output_record, QueryRecord.read(decoded).request(toolbox)
    except (InputError, RecursionError) as error:
        output_record["error"] = str(error) or "The record is nested too deeply."
    except ValueError as error:
        output_record["error"] = f"The line is not JSON: {error}."
    return output_record, None


def _read_id(decoded: Any) -> str | int | None:
    id_ = decoded.get("id") if isinstance(decoded, dict) else None
    if isinstance(id_, str):
        try:
            id_.encode()
        except UnicodeEncodeError as error:
            raise InputError("id: it is not valid Unicode text.") from error
        return id_
    return id_ if isinstance(id_, int) and not isinstance(id_, bool) else None
