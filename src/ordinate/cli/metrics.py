"""`ordinate metrics`: the catalogue, or one metric explained."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import (
    add_command,
    add_metric_file_option,
    add_output_options,
    write_report,
)

if TYPE_CHECKING:
    from ordinate.results.metric_catalogue import MetricCatalogue

EXAMPLES = """examples:
  ordinate metrics
  ordinate metrics cem_ord
  ordinate metrics --of probabilities
  ordinate metrics --format json -o metrics.json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "metrics",
        "List the metrics with direction, range and what they assume, or explain one.",
        EXAMPLES,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="the metric to explain")
    parser.add_argument(
        "--of",
        choices=("labels", "probabilities", "regression", "intervals", "ensembles"),
        help="what the metrics evaluate (default: labels; a NAME is looked for in all)",
    )
    add_metric_file_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the catalogue, or the page of one metric."""
    write_report(options, lambda: _make_catalogue(options.name, options.of))
    return 0


def _make_catalogue(name: str | None, task: Any) -> "MetricCatalogue":
    from ordinate.results.metric_catalogue import MetricCatalogue

    if name:
        return MetricCatalogue.of(name, task)
    return MetricCatalogue.list_all(task or "labels")
