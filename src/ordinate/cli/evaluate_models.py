"""`ordinate evaluate -e`: all saved models of an experiment on all its test sets."""

import argparse
from typing import TYPE_CHECKING

from ordinate.cli.experiment_options import add_experiment, opened
from ordinate.cli.options import reported
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.classify.model_overview import Overview
    from ordinate.inference import Intervals

# What says something of files, and of a single system.
OF_FILES = (
    *("gold", "predicted", "gold_file", "id", "row_order", "by", "second_gold", "losses"),
    *("probabilities", "renormalize", "bins", "map", "weights", "groups", "items", "fail_under"),
)
OF_MODELS = (
    *("features_base_dir", "label_column", "text_column", "id_column", "group_column"),
    *("model", "test"),
)
INSTEAD = {"groups": " Name the column of groups with --group-column."}


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the options that evaluate the models of an experiment in the place of files."""
    add_experiment(parser, required=False, labels=False)
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


def refuse_models(options: argparse.Namespace) -> None:
    """Refuse options of experiments where there is none, and a command without anything."""
    for name in OF_MODELS:
        if getattr(options, name):
            raise BadOption(f"{_flag(name)} is of an experiment: name its folder with -e.")
    if not options.files:
        raise BadOption(
            "There is nothing to evaluate: name files, or the folder of an experiment with -e (see "
            "ordinate evaluate --help)."
        )


def evaluate_models(options: argparse.Namespace, how: "Intervals | None") -> int:
    """Evaluate all saved models on all test sets, and write the report."""
    _refuse_files(options)
    reported(options, lambda: _overview(options, how))
    return 0


def _refuse_files(options: argparse.Namespace) -> None:
    if options.files:
        raise BadOption(f"Name files ({options.files[0]!r}) or an experiment (-e), not both.")
    for name in OF_FILES:
        if getattr(options, name):
            instead = INSTEAD.get(name, " Evaluate a file of predictions on its own.")
            raise BadOption(f"{_flag(name)} is of files, and -e evaluates models.{instead}")
    if options.missing != "error":
        raise BadOption("--missing is of files: models leave no item unanswered.")
    if options.task != "labels":
        raise BadOption("-e evaluates models of levels: leave --task out.")


def _overview(options: argparse.Namespace, how: "Intervals | None") -> "Overview":
    from ordinate.classify.contests import Entering, chosen_tests, one_scale
    from ordinate.classify.model_overview import SHOWN, Overview
    from ordinate.classify.trained_model import load_all
    from ordinate.cli.progress import ticking
    from ordinate.results import by_kind, chosen, needs_probabilities
    from ordinate.scale import Scale

    of_labels, of_probabilities = by_kind(options.metrics)
    if needs_probabilities(of_probabilities):
        raise BadOption(
            "-e evaluates levels. For metrics of probabilities, write predictions (ordinate "
            "predict) and evaluate that file with --probabilities p_."
        )
    metrics = chosen(of_labels)
    experiment = opened(options)
    stems = chosen_tests(experiment, options.test)
    models = load_all(experiment, options.model)
    declared = None if options.scale is None else Scale.of(options.scale)
    scale = one_scale(models, declared) or experiment.scale()
    entering = Entering(experiment, scale, models)
    contests = entering.contests(stems)
    shown = SHOWN if options.metrics is None else ()
    with ticking("evaluating") as tick:
        return Overview.of(contests, metrics, how, shown=shown, notes=entering.notes, tick=tick)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
