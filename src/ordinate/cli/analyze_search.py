"""`ordinate analyze-search`: what a search found, which hyperparameters mattered, how fits went."""

import argparse
from typing import Any

from ordinate.cli.options import add_command, add_folder_option, add_output_options, write_report

EXAMPLES = """examples:
  ordinate analyze-search -e found
  ordinate analyze-search -e found -o analysis.json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "analyze-search",
        "Show the metrics of a search with their intervals, which hyperparameters mattered, and "
        "how fits went (learning curves as data: --format json or csv).",
        EXAMPLES,
    )
    add_folder_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Analyse, and write the report."""
    from ordinate.tuning.search.analysis import analyze_search

    write_report(options, lambda: analyze_search(options.experiment))
    return 0
