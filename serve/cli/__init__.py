"""The command line: a file a command group, all of them registered in ``commands``."""


def main() -> None:
    """Run the command line; ``commands`` is imported when it is run."""
    from casewright.serve.cli.commands import main as run

    run()
