"""`ordinate metrics`: the catalogue, or one metric explained."""

import argparse
import sys
from typing import Any

from ordinate.cli.options import HelpFormatter, add_metric_file_option

EXAMPLES = """examples:
  ordinate metrics
  ordinate metrics cem_ord
  ordinate metrics --of probabilities
  ordinate metrics --format json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "metrics",
        help="list the metrics, or explain one",
        description="List the metrics with direction, range and what they assume, or explain one.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the metric to explain")
    parser.add_argument(
        "--of",
        choices=("labels", "probabilities", "regression", "intervals", "ensembles"),
        help="what the metrics evaluate (default: labels; a NAME is looked for in all)",
    )
    parser.add_argument(
        "--format", choices=("text", "json", "csv", "markdown", "latex"), default="text"
    )
    add_metric_file_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the catalogue, or the page of one metric."""
    from ordinate.render import find_terminal_width, render
    from ordinate.results.metric_catalogue import MetricCatalogue

    task = options.of
    catalogue = (
        MetricCatalogue.of(options.name, task)
        if options.name
        else MetricCatalogue.list_all(task or "labels")
    )
    sys.stdout.write(render(catalogue, options.format, width=find_terminal_width()))
    return 0
