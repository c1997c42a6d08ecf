"""`ordinate merge`: shards of `ordinate count` in, the report on all their items out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, add_flags
from ordinate.cli.options import (
    IntervalOptions,
    add_command,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    parse_comparison_settings,
    parse_intervals,
    write_report,
)

if TYPE_CHECKING:
    from ordinate.results import Evaluation
    from ordinate.results.comparison import Comparison
    from ordinate.summaries.confusion import ConfusionData

EXAMPLES = """examples:
  ordinate merge shard-*.json
  ordinate merge monday.json tuesday.json --metrics cem_ord,mae --format json -o week.json

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "merge",
        "Merge shards that `ordinate count` wrote, on any machine and on any day, and report on "
        "all their items: as `ordinate evaluate` does for one system, as `ordinate compare` does "
        "for several.",
        EXAMPLES,
    )
    parser.add_argument(
        "shards", nargs="+", metavar="SHARD", type=InputPath, help="what `ordinate count` wrote"
    )
    group = parser.add_argument_group("metrics and confidence intervals")
    add_metrics_option(group)
    add_metric_file_option(group)
    add_flags(group, IntervalOptions)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Merge, and write the report."""
    write_report(options, lambda: _report(options))
    return 0


def _report(options: argparse.Namespace) -> "Evaluation | Comparison":
    from ordinate.cli.progress import show_share
    from ordinate.results import Origin, select_metrics
    from ordinate.results.comparison import Comparison
    from ordinate.results.shards import merge_shards
    from ordinate.summaries.confusion import ConfusionData

    metrics, found = select_metrics(options.metrics), merge_shards(options.shards)
    if isinstance(found, ConfusionData):
        return _evaluate(options, found, metrics)
    origin = Origin(gold=found.gold, files=found.files, notes=found.notes)
    settings = parse_comparison_settings(options)
    with show_share("comparing") as progress:
        return Comparison.from_panel(
            found.panel, metrics, settings, origin=origin, progress=progress
        )


def _evaluate(options: argparse.Namespace, found: "ConfusionData", metrics: Any) -> "Evaluation":
    from ordinate.cli.progress import show_share
    from ordinate.results.evaluation import evaluate_data

    intervals = parse_intervals(options)
    with show_share("evaluating") as progress:
        return evaluate_data(found, metrics, interval=intervals, progress=progress)
