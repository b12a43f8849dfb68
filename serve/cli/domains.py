"""Commands `casewright domains` (lists domains, rebuilds stores) and `new` (writes a domain)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer, echo

from casewright.errors import InputError
from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json

#: The text of a new domain's file; ``MY_DOMAIN`` stands for the domain's name.
TEMPLATE = '''\
"""The tools of MY_DOMAIN. Replace the two tools by your own; the other code can stay."""

from pathlib import Path
from typing import Literal

from casewright import CallContext, Toolbox, ToolExample, own_domain, tool


# A tool is a typed function. Planners read its name and docstring: say there what the tool finds,
# and by which values. Types restrict the arguments: a plan can write only the texts in a Literal.
@tool(
    # The fields of a result; later steps can refer to them.
    results=("machine_id", "name"),
    # A question with its plan. Give every tool an example: planners use examples at once.
    example=ToolExample("which pumps are there", 's1 = find_machine(query="pumps")'),
)
def find_machine(query: str, call: CallContext) -> list[dict]:
    """Finds machines by their name or place."""
    # Casewright sets `call`; a plan cannot set it. call.scope identifies the user.
    return [{"machine_id": "M7", "name": f"{query} 7"}]


@tool(
    # An identifier comes from an earlier step, or from the context, such as the open page.
    sources={"machine_id": ("step", "context")},
    example=ToolExample(
        "how hot is the mill",
        's1 = find_machine(query="mill")\\n'
        's2 = read_sensor(machine_id=s1.machine_id, sensor="temperature")',
    ),
)
def read_sensor(machine_id: str, sensor: Literal["temperature", "vibration"]) -> str:
    """The latest value of one sensor of one machine."""
    return f"{sensor} of {machine_id}: 61"


# The file to which `casewright draft` and `correct` write questions with their right plans.
learn_file = Path(__file__).with_name("learn.jsonl")
domain = own_domain(
    "MY_DOMAIN",
    Toolbox([find_machine, read_sensor]),
    learn_file if learn_file.is_file() else (),
    description="The machines of a plant.",
    questions=["how hot is the lathe"],
    # Fields that identify the user; a field's first value is its default. Tools read call.scope.
    # scopes={"site": ["north", "south"]},
)
'''

app = Typer(add_completion=False)


@app.command()
def domains(
    build: Annotated[
        str | None, Option(help="Rebuild this domain's stores.", metavar="NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains with example questions and options, or rebuild a domain's stores."""
    from casewright.domains import domain_names, find_domain
    from casewright.stores.paths import data_folder

    if build is not None:
        from casewright.serve.session.session import rebuild

        counts = rebuild(build)
        if as_json:
            print_json({"domain": build, "cases": counts})
        else:
            counts_text = ", ".join(f"{count} {name}" for name, count in counts.items())
            echo(f"{build}: {counts_text}")
        return
    all_domains = [find_domain(name) for name in domain_names()]
    if as_json:
        rows = [
            {
                "name": domain.name,
                "description": domain.description,
                "questions": list(domain.questions),
                "scopes": {field: list(values) for field, values in domain.scopes.items()},
                "options": {option.name: option.help for option in domain.options},
                "folder": str(data_folder() / domain.name),
                "built": (data_folder() / domain.name / domain.mark).exists(),
            }
            for domain in all_domains
        ]
        print_json(rows)
        return
    for domain in all_domains:
        echo(f"{domain.name}: {domain.description}")
        for question in domain.questions:
            echo(f'  casewright ask --domain {domain.name} "{question}"')
        for field, values in domain.scopes.items():
            echo(f"  --{field} {' | '.join(values)}")
        for option in domain.options:
            echo(f"  --{option.name} {option.metavar}".rstrip() + f": {option.help}")


@app.command("new")
def new(
    file: Annotated[Path, Argument(help="The Python file to write.", metavar="FILE.py")],
    as_json: AsJson = False,
) -> None:
    """Write a commented domain file with two example tools; the domain can answer at once."""
    from casewright.domains import domain_names

    if file.suffix != ".py":
        raise InputError(f"{file} is not the name of a Python file. End it in .py.")
    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower()).strip("-")[:50]
    if not name[:1].isalpha() or name in domain_names():
        name = f"my-{name}".strip("-")
    try:
        with file.open("x", encoding="utf-8") as new_file:
            new_file.write(TEMPLATE.replace("MY_DOMAIN", name))
    except FileExistsError as error:
        raise InputError(f"{file} already exists, and is not replaced. Name another.") from error
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from error
    domain = f"{file}:domain"
    ask = f'casewright ask --domain {domain} "how hot is the lathe"'
    draft = f"casewright draft --domain {domain} --output {file.with_name('learn.jsonl')}"
    if as_json:
        print_json({"file": str(file), "domain": domain, "next": [ask, draft]})
        return
    echo(f"Wrote {file}. It can answer questions without changes:\n  {ask}")
    echo(f"Replace its two tools by your own. Then:\n  {draft}")
