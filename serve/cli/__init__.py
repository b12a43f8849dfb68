"""The command line: files of related commands, which ``commands`` registers."""


def main() -> None:
    """Run the command line; ``commands`` is not imported before this call."""
    from casewright.serve.cli.commands import main as run

    run()
