"""`ordinate evaluate -e`: all saved models of an experiment on all its test sets."""

import argparse
from typing import TYPE_CHECKING

from ordinate.cli.options import add_experiment_options, open_experiment, write_report
from ordinate.errors import BadOption
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.classify.model_overview import ModelOverview
    from ordinate.inference import ConfidenceIntervals

# Options of files, and of a single system.
FILE_OPTIONS = (
    *(
        "gold",
        "predicted",
        "gold_file",
        "id",
        "row_order",
        "by",
        "second_rater",
        "error_attribution",
    ),
    *("probabilities", "renormalize", "bins", "map", "weights", "groups", "items", "fail_under"),
)
MODEL_OPTIONS = (
    *("features_base_dir", "label_column", "text_column", "id_column", "group_column"),
    *("model", "test"),
)
OPTION_HINTS = {"groups": " Name the column of groups with --group-column."}


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that evaluate the models of an experiment in the place of files."""
    add_experiment_options(parser, required=False, labels=False)
    parser.add_argument(
        "--model",
        metavar="NAME",
        action="append",
        default=[],
        help="with -e: a saved model, or how its name alone begins (default: all); may be repeated",
    )
    parser.add_argument(
        "--test",
        metavar="STEM",
        action="append",
        default=[],
        help="with -e: a test set, by its file without suffix (default: all); may be repeated",
    )


def refuse_model_options(options: argparse.Namespace) -> None:
    """Refuse options of experiments where there is none, and a command without anything."""
    for name in MODEL_OPTIONS:
        if getattr(options, name):
            raise BadOption(f"{format_flag(name)} is of an experiment: name its folder with -e.")
    if not options.files:
        raise BadOption(
            "There is nothing to evaluate: name files, or the folder of an experiment with -e (see "
            "ordinate evaluate --help)."
        )


def run_evaluate_models(
    options: argparse.Namespace, intervals: "ConfidenceIntervals | None"
) -> int:
    """Evaluate all saved models on all test sets, and write the report."""
    _refuse_file_options(options)
    write_report(options, lambda: _build_overview(options, intervals))
    return 0


def _refuse_file_options(options: argparse.Namespace) -> None:
    if options.files:
        raise BadOption(f"Name files ({options.files[0]!r}) or an experiment (-e), not both.")
    for name in FILE_OPTIONS:
        if getattr(options, name):
            instead = OPTION_HINTS.get(name, " Evaluate a file of predictions on its own.")
            raise BadOption(f"{format_flag(name)} is of files, and -e evaluates models.{instead}")
    if options.missing != "error":
        raise BadOption("--missing is of files: models leave no item unanswered.")
    if options.task != "labels":
        raise BadOption("-e evaluates models of levels: leave --task out.")


def _build_overview(
    options: argparse.Namespace, intervals: "ConfidenceIntervals | None"
) -> "ModelOverview":
    from ordinate.classify.model_overview import SHOWN_METRICS, ModelOverview
    from ordinate.classify.system_predictions import (
        PredictionCollector,
        require_one_scale,
        select_test_sets,
    )
    from ordinate.classify.trained_model import load_models
    from ordinate.cli.progress import show_share
    from ordinate.results import needs_probabilities, select_metrics, split_metrics_by_summary
    from ordinate.scale import Scale

    of_labels, of_probabilities = split_metrics_by_summary(options.metrics)
    if needs_probabilities(of_probabilities):
        raise BadOption(
            "-e evaluates levels. For metrics of probabilities, write predictions (ordinate "
            "predict) and evaluate that file with --probabilities p_."
        )
    metrics = select_metrics(of_labels)
    experiment = open_experiment(options)
    stems = select_test_sets(experiment, options.test)
    models = load_models(experiment, options.model)
    declared = None if options.scale is None else Scale.of(options.scale)
    scale = require_one_scale(models, declared) or experiment.scale()
    collector = PredictionCollector(experiment, scale, models)
    test_sets = collector.collect_predictions(stems)
    shown = SHOWN_METRICS if options.metrics is None else ()
    with show_share("evaluating") as progress:
        return ModelOverview.of(
            test_sets, metrics, intervals, shown=shown, notes=collector.notes, progress=progress
        )
