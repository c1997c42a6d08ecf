"""`ordinate rank`: all saved models, and what others predicted, in leaderboards."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    HelpFormatter,
    add_experiment_options,
    add_metric_file_option,
    add_output_options,
    add_resampling_options,
    open_experiment,
    parse_comparison_settings,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.classify.model_ranking import ModelRanking
    from ordinate.metrics import Metric

EXAMPLES = """examples:
  ordinate rank -e study --by cem_ord
  ordinate rank -e study --by quadratic_kappa --external gpt.json --missing drop
  ordinate rank -e study --by mae --test essays --external 'runs/*.csv' --predicted answer
  ordinate rank -e study --by cem_ord --format latex -o table.tex

external files join by id: CSV, TSV, JSONL or Parquet with a column of levels or columns p_LEVEL of
probabilities; JSON {id: level} or {id: {level: p}}. Of probabilities the most probable level counts.
Items that a file leaves unanswered count as the worst prediction, so that leaving out hard items gains
nothing; --missing drop takes an unanswered item out for all systems, --missing error refuses it.

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""  # noqa: E501 - as wide as the longest line of examples


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "rank",
        help="rank saved models and external predictions",
        description="Rank all saved models of an experiment, and predictions of others, on every "
        "test set: values with confidence intervals, rank intervals, paired tests of all "
        "differences, constants and chance beside.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    add_experiment_options(parser)
    add = parser.add_argument
    add("--by", metavar="METRIC", required=True, help="name or expression of the metric")
    add(
        "--test",
        metavar="STEM",
        action="append",
        default=[],
        help="test set, by the name of its file without suffix (default: all); may be repeated",
    )
    add(
        "--model",
        metavar="NAME",
        action="append",
        default=[],
        help="saved model, or how its name alone begins (default: all); may be repeated",
    )
    add(
        "--external",
        metavar="FILE",
        action="append",
        type=InputPath,
        default=[],
        help="file of predictions by id, or a pattern; may be repeated",
    )
    add("--predicted", metavar="COL", help="column of the levels in external files")
    add(
        "--renormalize",
        action="store_true",
        help="accept external probabilities that sum to 0.99 to 1.01 instead of 1",
    )
    add(
        "--missing",
        choices=("error", "drop", "worst"),
        default="worst",
        help="what becomes of items that a system leaves unanswered (default: worst)",
    )
    add_resampling_options(parser)
    add_output_options(parser)
    add_metric_file_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rank, and write the report."""
    write_report(options, lambda: _rank_systems(options))
    return 0


def _rank_systems(options: argparse.Namespace) -> "ModelRanking":
    from ordinate.classify.external_systems import read_external_systems
    from ordinate.classify.model_ranking import ModelRanking
    from ordinate.classify.system_predictions import (
        PredictionCollector,
        require_one_scale,
        select_test_sets,
    )
    from ordinate.classify.trained_model import load_models
    from ordinate.cli.progress import show_share
    from ordinate.readers.external_predictions import PredictionColumns
    from ordinate.scale import Scale
    from ordinate.search.saved_models import list_model_names

    metric, settings = _parse_metric(options.by), parse_comparison_settings(options)
    experiment = open_experiment(options)
    stems = select_test_sets(experiment, options.test)
    externals_only = (
        options.external and not options.model and not list_model_names(experiment.root)
    )
    models = [] if externals_only else load_models(experiment, options.model)
    declared = None if options.scale is None else Scale.of(options.scale)
    scale = require_one_scale(models, declared) or experiment.scale()
    columns = PredictionColumns(options.id_column, options.predicted)
    externals = read_external_systems(
        options.external, scale, columns, renormalize=options.renormalize
    )
    collector = PredictionCollector(experiment, scale, models, externals)
    test_sets = collector.collect_predictions(stems)
    with show_share("ranking") as progress:
        return ModelRanking.of(
            test_sets,
            metric,
            settings,
            missing=options.missing,
            notes=collector.notes,
            progress=progress,
        )


def _parse_metric(text: str) -> "Metric":
    from ordinate.metrics import find_metric, split_expressions

    if len(split_expressions(text)) != 1:
        raise BadOption(f"--by takes one metric, not {text!r}. `ordinate evaluate -e` shows many.")
    return find_metric(text)
