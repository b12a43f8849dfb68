"""The command line. Each module has related commands; the module ``commands`` registers all."""


def main() -> None:
    """Run the command line; only this call imports the module ``commands``."""
    from casewright.serve.cli.commands import main as run

    run()
