"""`ordinate predict`: a saved model and data in, levels, probabilities, prediction sets out."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    add_command,
    add_experiment_options,
    add_model_option,
    add_output_options,
    list_inputs,
    open_experiment,
    show_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.tuning.classify.batch_prediction import PredictionInput
    from ordinate.tuning.classify.trained_model import TunedModel
    from ordinate.tuning.experiment.folder import Experiment

EXAMPLES = """examples:
  ordinate predict -e study
  ordinate predict -e study --model tfidf_word-logistic --data new.csv -o levels.csv
  ordinate predict -e study --data study/ml-test-data/test.csv -o test.parquet --force
  ordinate predict -e study --feature-folder new/tfidf_word -o levels.csv

columns: id (or row), level (by the decision rule of tuning), argmax, rounded_mean, p_LEVEL for each
level of the full scale, set_low and set_high (the conformal prediction set)
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "predict",
        "Predict levels with a model that `ordinate tune` saved: for new texts, whose features the "
        "stored extractors make, for a folder of features, or without either for all test sets of "
        "the experiment, into predictions/MODEL/DATA.csv. Other predictions go to standard output "
        "or to a file, .csv or .parquet.",
        EXAMPLES,
    )
    add_experiment_options(parser)
    add_model_option(parser)
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--data",
        metavar="FILE",
        type=InputPath,
        help="file of texts, or a data file of the experiment",
    )
    either.add_argument(
        "--feature-folder",
        metavar="DIR",
        type=InputPath,
        help="folder of features for one data set, of the model's own set",
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Predict, write, and say what was written."""
    from ordinate.tuning.classify.trained_model import load_model
    from ordinate.tuning.search.prediction_table import check_suffix

    if options.output is not None:
        check_suffix(options.output)
    experiment = open_experiment(options)
    model = load_model(experiment, options.model)
    _check_same_scale(options, model)
    stems = _select_stems(options, experiment)
    if stems and options.output is None:
        from ordinate.tuning.classify.batch_prediction import predict_datasets

        result = predict_datasets(experiment, model, stems, force=options.force)
        show_report(options, result, sys.stdout)
        return 0
    _write_predictions(options, experiment, model, stems)
    return 0


def _check_same_scale(options: argparse.Namespace, model: "TunedModel") -> None:
    from ordinate.scale import Scale

    if options.scale is not None and Scale.of(options.scale) != model.scale:
        raise BadOption(
            f"The model {model.name} predicts on the scale {model.scale}, and not on --scale "
            f"{options.scale}."
        )


def _select_stems(options: argparse.Namespace, experiment: "Experiment") -> list[str]:
    """Return the data sets of the experiment to predict; none where other data are given."""
    from ordinate.cli.output import follow_links
    from ordinate.tuning.classify.system_predictions import select_test_sets

    if options.feature_folder is not None:
        return []
    if options.data is None:
        stems = select_test_sets(experiment)
        if options.output is not None and len(stems) > 1:
            raise BadOption(
                f"-o takes the predictions of one data set, and there are {len(stems)}: "
                f"{', '.join(stems)}. Name one with --data, or leave -o out."
            )
        return stems
    given = follow_links(options.data)
    return [stem for stem, (_, own) in experiment.files.items() if own.resolve() == given]


def _write_predictions(
    options: argparse.Namespace, experiment: "Experiment", model: "TunedModel", stems: list[str]
) -> None:
    from ordinate.cli.output import check_output_paths, replace_atomically, write_csv
    from ordinate.tuning.classify.batch_prediction import PredictionReport, predict_items

    check_output_paths(list_inputs(options), [options.output], allowed="predictions")
    with replace_atomically(options.output, force=options.force) as out:
        items = _load_items(options, experiment, model, stems)
        predicted = predict_items(model, items, options.output)
        result, predictions = PredictionReport(model, (predicted,)), predicted.predictions
        if out is None:
            write_csv(predictions.csv(), sys.stdout)
            show_report(options, result, sys.stderr)
        else:
            predictions.write(out)
            show_report(options, result, sys.stdout)


def _load_items(
    options: argparse.Namespace, experiment: "Experiment", model: "TunedModel", stems: list[str]
) -> "PredictionInput":
    from ordinate.tuning.classify.batch_prediction import (
        load_data_items,
        load_experiment_items,
        load_feature_items,
    )

    if stems:
        return load_experiment_items(experiment, model, stems[0])
    if options.feature_folder is not None:
        return load_feature_items(model, options.feature_folder, options.id_column)
    return load_data_items(experiment, model, options.data)
