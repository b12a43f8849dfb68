"""Run the command line with ``python -m casewright``."""

from casewright.serve.cli import main

main()
