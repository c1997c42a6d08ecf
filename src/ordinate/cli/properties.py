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
    if options.most_items is not None and (options.most_items < 1 or not options.search):
        raise BadOption("--most-items takes an integer of at least 1, together with --search.")
    if options.explain and options.metrics:
        raise BadOption("--explain takes one metric and one property, and no further metrics.")
    write_report(options, lambda: _find_verdicts(options))
    return 0


def _find_verdicts(options: argparse.Namespace) -> "PropertyVerdicts | PropertyExplanation":
    from ordinate.cli.progress import show_share
    from ordinate.meta.properties_search import find_property
    from ordinate.meta.property_verdicts import PropertyExplanation, PropertyVerdicts
    from ordinate.metrics import find_metric, list_metrics, split_expressions
    from ordinate.metrics.known_properties import drop_default_options

    law = find_property(options.explain[1]) if options.explain else None
    texts = options.explain[:1] if options.explain else options.metrics
    named = [name for text in texts for name in split_expressions(text)]
    metrics = [find_metric(name) for name in named] or list_metrics()
    with show_share("searching") as progress:
        verdicts = PropertyVerdicts.of(
            metrics, search=options.search, most_items=options.most_items, progress=progress
        )
    return (
        verdicts
        if law is None
        else PropertyExplanation(drop_default_options(metrics[0]), law.name, verdicts)
    )
