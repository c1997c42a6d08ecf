"""`ordinate rank`: all saved models, and what others predicted, in leaderboards."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, add_flags
from ordinate.cli.options import (
    IntervalOptions,
    add_command,
    add_experiment_options,
    add_metric_file_option,
    add_metric_option,
    add_metrics_option,
    add_output_options,
    open_experiment,
    parse_comparison_settings,
    write_report,
)

if TYPE_CHECKING:
    from ordinate.tuning.classify.model_ranking import ModelRanking

EXAMPLES = """examples:
  ordinate rank -e study
  ordinate rank -e study --metric quadratic_kappa --external gpt.json --unanswered drop
  ordinate rank -e study --metric mae --test-set essays --external 'runs/*.csv' --predicted answer
  ordinate rank -e study --metrics cem_ord,mae --format latex -o table.tex

external files join by id: CSV, TSV, JSONL or Parquet with a column of levels or columns p_LEVEL of
probabilities; JSON {id: level} or {id: {level: p}}. Of probabilities the most probable level
counts. Items that a file leaves unanswered count as the worst prediction, so that leaving out hard
items gains nothing; --unanswered drop takes such an item out for all systems, --unanswered error
refuses it.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns

    parser = add_command(
        commands,
        "rank",
        "Rank all saved models of an experiment, and predictions of others, on every test set by "
        "one metric: values with confidence intervals, rank intervals, paired tests of all "
        "differences, constants and chance beside. Models are evaluated by further metrics, by "
        "each decision rule, and with their prediction sets.",
        EXAMPLES,
    )
    add_experiment_options(parser)
    group = parser.add_argument_group("systems and test sets")
    add = group.add_argument
    add(
        "--model",
        metavar="NAME",
        action="append",
        default=[],
        help="saved model, or how its name alone begins; may be repeated (default: all)",
    )
    add(
        "--test-set",
        metavar="NAME",
        action="append",
        default=[],
        help="test set, by the name of its file without suffix (default: all); may be repeated",
    )
    add(
        "--external",
        metavar="FILE",
        action="append",
        type=InputPath,
        default=[],
        help="file of predictions by id, or a pattern; may be repeated",
    )
    add_flags(group, ItemColumns, ("predicted", "renormalize"))
    add(
        "--unanswered",
        choices=("error", "drop", "worst"),
        default="worst",
        help="what becomes of items that a system leaves unanswered (default: worst)",
    )
    group = parser.add_argument_group("metrics")
    add_metric_option(group)
    add_metrics_option(group)
    add_metric_file_option(group)
    add_flags(group, IntervalOptions)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rank, and write the report."""
    write_report(options, lambda: _rank_systems(options))
    return 0


def _rank_systems(options: argparse.Namespace) -> "ModelRanking":
    from ordinate.cli.progress import show_share
    from ordinate.tuning.classify.model_ranking import rank

    settings = parse_comparison_settings(options)
    with show_share("ranking") as progress:
        return rank(
            open_experiment(options),
            metric=options.metric,
            metrics=options.metrics,
            models=options.model,
            test_sets=options.test_set,
            external=options.external,
            id_column=options.id_column,
            predicted=getattr(options, "predicted", None),
            renormalize=getattr(options, "renormalize", False),
            unanswered=options.unanswered,
            scale=options.scale,
            settings=settings,
            progress=progress,
        )
