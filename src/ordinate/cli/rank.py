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
    parse_scale,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.classify.model_ranking import ModelRanking
    from ordinate.metrics import Metric

EXAMPLES = """examples:
  ordinate rank -e study
  ordinate rank -e study --metric quadratic_kappa --external gpt.json --unanswered drop
  ordinate rank -e study --metric mae --test-set essays --external 'runs/*.csv' --predicted answer
  ordinate rank -e study --metrics cem_ord,mae --format latex -o table.tex

external files join by id: CSV, TSV, JSONL or Parquet with a column of levels or columns p_LEVEL of
probabilities; JSON {id: level} or {id: {level: p}}. Of probabilities the most probable level counts.
Items that a file leaves unanswered count as the worst prediction, so that leaving out hard items gains
nothing; --unanswered drop takes such an item out for all systems, --unanswered error refuses it.

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""  # noqa: E501 - as wide as the longest line of examples


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ProbabilityColumns, SystemColumns

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
    add_flags(group, SystemColumns, ("predicted",))
    add_flags(group, ProbabilityColumns, ("renormalize",))
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
    from ordinate.classify.external_predictions import PredictionColumns
    from ordinate.classify.external_systems import read_external_systems
    from ordinate.classify.model_ranking import ModelRanking
    from ordinate.classify.system_predictions import (
        PredictionCollector,
        require_one_scale,
        select_test_sets,
    )
    from ordinate.classify.trained_model import load_models
    from ordinate.cli.progress import show_share
    from ordinate.search.saved_models import list_model_names

    metric, settings = _parse_metric(options.metric), parse_comparison_settings(options)
    metrics = _parse_metrics(options.metrics)
    experiment = open_experiment(options)
    stems = select_test_sets(experiment, options.test_set)
    externals_only = (
        options.external and not options.model and not list_model_names(experiment.root)
    )
    models = [] if externals_only else load_models(experiment, options.model)
    scale = require_one_scale(models, parse_scale(options)) or experiment.scale()
    columns = PredictionColumns(options.id_column, getattr(options, "predicted", None))
    externals = read_external_systems(
        options.external, scale, columns, renormalize=getattr(options, "renormalize", False)
    )
    collector = PredictionCollector(experiment, scale, models, externals)
    test_sets = collector.collect_predictions(stems)
    with show_share("ranking") as progress:
        return ModelRanking.of(
            test_sets,
            metric,
            metrics,
            settings,
            missing=options.unanswered,
            notes=collector.notes,
            progress=progress,
        )


def _parse_metric(text: str) -> "Metric":
    from ordinate.metrics import find_metric, split_expressions

    if len(split_expressions(text)) != 1:
        raise BadOption(f"--metric takes one metric, not {text!r}: name others with --metrics.")
    return find_metric(text)


def _parse_metrics(text: str | None) -> "list[Metric] | None":
    """Return the metrics by which models are evaluated, None for the usual ones."""
    from ordinate.results import needs_probabilities, select_metrics, split_metrics_by_summary

    of_labels, of_probabilities = split_metrics_by_summary(text)
    if needs_probabilities(of_probabilities):
        raise BadOption(
            "Models are ranked by their levels. For metrics of probabilities, write predictions "
            "(ordinate predict) and evaluate that file with --probabilities p_."
        )
    return None if text is None else select_metrics(of_labels)
