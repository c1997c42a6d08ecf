"""`ordinate properties`: which formal properties metrics have, with counterexamples."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import (
    add_command,
    add_metric_file_option,
    add_output_options,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.meta.property_verdicts import PropertyExplanation, PropertyVerdicts

EXAMPLES = """examples:
  ordinate properties
  ordinate properties cem_ord quadratic_kappa 'weighted_kappa(power=1)'
  ordinate properties --explain quadratic_kappa monotonicity
  ordinate properties --search --format json -o properties.json
  ordinate properties mine --load my_metrics.py
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "properties",
        "Say which formal properties metrics have: every small case is tried, and the "
        "smallest counterexample is shown. What was found about the metrics of the catalogue is on "
        "file; metrics with options and your own are searched when you ask for them.",
        EXAMPLES,
    )
    add = parser.add_argument
    add("metrics", nargs="*", metavar="METRIC", help="names or expressions (default: all)")
    add(
        "--explain",
        nargs=2,
        metavar=("METRIC", "PROPERTY"),
        help="lay out one property of one metric",
    )
    add("--search", action="store_true", help="search again instead of reading what is on file")
    add("--most-items", metavar="N", type=int, help="try no case of more items (with --search)")
    add_metric_file_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write what is known or found."""
    if options.explain and options.metrics:
        raise BadOption("--explain takes one metric and one property, and no further metrics.")
    write_report(options, lambda: _find_verdicts(options))
    return 0


def _find_verdicts(options: argparse.Namespace) -> "PropertyVerdicts | PropertyExplanation":
    from ordinate.cli.progress import show_share
    from ordinate.meta.property_verdicts import find_properties

    metric, law = options.explain or (None, None)
    with show_share("searching") as progress:
        return find_properties(
            ",".join(options.metrics) if metric is None else metric,
            law,
            search=options.search,
            most_items=options.most_items,
            progress=progress,
        )
