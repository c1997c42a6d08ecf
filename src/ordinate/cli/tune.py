"""`ordinate tune`: from labelled data and feature sets to the best model for a metric."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, StorePath, list_flag_types
from ordinate.cli.options import (
    add_command,
    add_experiment_options,
    add_metric_file_option,
    open_experiment,
    write_report,
)
from ordinate.cli.search_runs import (
    add_search_flags,
    build_settings,
    make_origin,
    merge_search_flags,
)
from ordinate.tuning.classify.settings import Settings
from ordinate.tuning.experiment.data_columns import DataColumns

if TYPE_CHECKING:
    from ordinate.results.base import Result

EXAMPLES = """examples:
  ordinate tune -e study --metric quadratic_kappa
  ordinate tune -e study --metric ordinal_mse --top-k 5 --weight-strategy inverse --weight-alpha 0.7
  ordinate tune -e study --models logistic,svm,lightgbm,vote --trials 50 --jobs 4
  ordinate tune -e study --feature-pattern 'tfidf-*' --nested --dry-run
  ordinate tune -e study --models svm --params '{"svm": {"C": 2.0}}'
  ordinate tune -e study --config study/results/runs/cem_ord-0123456789ab/config.toml

models: logistic, threshold, frank_hall, naive_bayes, svm, forest, lightgbm, xgboost, regression,
and vote, which averages the best of the others

A run that was killed goes on where it stopped when the same command is given again.
"""

DATA_FLAGS: dict[str, type] = {
    "experiment": StorePath,
    "features_base_dir": InputPath,
    "scale": str,
    **list_flag_types(DataColumns),
}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "tune",
        "Screen feature sets with a cheap model, search models on the best of them, and save the "
        "one that does best by cross-validation for any metric of labels. Test data select "
        "nothing: the winner is tested on them once.",
        EXAMPLES,
    )
    add_experiment_options(parser, required=False)
    add_search_flags(parser, Settings)
    add_metric_file_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Tune, and write the report."""
    flags = merge_search_flags(options, Settings, DATA_FLAGS)
    for name in DATA_FLAGS:
        setattr(options, name, flags.get(name))
    settings = build_settings(Settings, flags)
    write_report(options, lambda: _run_tuning(options, flags, settings))
    return 0


def _run_tuning(options: argparse.Namespace, flags: dict[str, Any], settings: Settings) -> "Result":
    from ordinate.cli.progress import show_stages
    from ordinate.tuning.classify.tuning import plan_tuning, tune_experiment

    experiment = open_experiment(options)
    if flags.get("dry_run"):
        return plan_tuning(experiment, settings, scale=options.scale)
    origin = make_origin("tune", flags, settings, list(DATA_FLAGS), load=options.load)
    with show_stages() as progress:
        return tune_experiment(
            experiment, settings, scale=options.scale, origin=origin, progress=progress
        )
