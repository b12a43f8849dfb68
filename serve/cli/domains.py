"""`casewright domains`: the domains that can be asked about."""

from __future__ import annotations

from typing import Annotated

from typer import Option, Typer, echo

from casewright.serve.cli.options import AsJson
from casewright.serve.cli.output import print_json

app = Typer(add_completion=False)


@app.command()
def domains(
    build: Annotated[
        str | None, Option(help="Build this domain's stores anew.", metavar="NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains, what they are about, and questions to try."""
    from casewright.domains import domain_names, find_domain
    from casewright.stores.paths import data_folder

    if build is not None:
        from casewright.serve.session.session import rebuild

        counts = rebuild(build)
        if as_json:
            print_json({"domain": build, "cases": counts})
        else:
            listed = ", ".join(f"{count} {name}" for name, count in counts.items())
            echo(f"{build}: {listed}")
        return
    known = [find_domain(name) for name in domain_names()]
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
            for domain in known
        ]
        print_json(rows)
        return
    for domain in known:
        echo(f"{domain.name}: {domain.description}")
        for question in domain.questions:
            echo(f'  casewright ask --domain {domain.name} "{question}"')
        for field, values in domain.scopes.items():
            echo(f"  --{field} {' | '.join(values)}")
        for option in domain.options:
            echo(f"  --{option.name} {option.metavar}".rstrip() + f": {option.help}")
