"""`casewright domains`: what there is to ask about."""

from __future__ import annotations

from typing import Annotated

import typer

from casewright.serve.cli.options import AsJson

app = typer.Typer(add_completion=False)


@app.command()
def domains(
    build: Annotated[
        str | None, typer.Option(help="Build this domain's stores anew.", metavar="NAME")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the domains, what they are about, and questions to try."""
    from casewright.domains import domain_names, find_domain
    from casewright.serve.cli.output import print_json
    from casewright.stores.paths import data_folder

    if build is not None:
        from casewright.serve.session.session import rebuild

        counts = rebuild(build)
        if as_json:
            print_json({"domain": build, "cases": counts})
        else:
            listed = ", ".join(f"{count} {name}" for name, count in counts.items())
            typer.echo(f"{build}: {listed}")
        return
    known = [find_domain(name) for name in domain_names()]
    if as_json:
        print_json(
            [
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
        )
        return
    for domain in known:
        typer.echo(f"{domain.name}: {domain.description}")
        for question in domain.questions:
            typer.echo(f'  casewright ask --domain {domain.name} "{question}"')
        for field, values in domain.scopes.items():
            typer.echo(f"  --{field} {' | '.join(values)}")
        for option in domain.options:
            typer.echo(f"  --{option.name} {option.metavar}".rstrip() + f": {option.help}")
