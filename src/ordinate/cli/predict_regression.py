"""`ordinate predict-regression`: predictions of new rows, with their intervals."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, add_flags
from ordinate.cli.options import (
    TEXT_FILE_OPTIONS,
    add_command,
    add_file_output_options,
    add_folder_option,
    add_missing_rows_option,
    add_model_option,
    add_text_file_options,
    list_inputs,
)
from ordinate.tuning.experiment.data_columns import DataColumns

if TYPE_CHECKING:
    from ordinate.tuning.regress.trained_model import Predictions, RegressionModel

EXAMPLES = """examples:
  ordinate predict-regression new.csv -e found -o predictions.csv
  ordinate predict-regression new.csv -e found --model svr --alpha 0.2
  ordinate predict-regression new.csv -e found --missing drop
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "predict-regression",
        "Predict new rows with their intervals. Columns: row, ids and targets where the data have "
        "them, prediction, lower, upper and, where members of an ensemble lie apart, spread. The "
        "file is .csv or .parquet; with targets, `ordinate evaluate-regression` takes it as it is.",
        EXAMPLES,
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        type=InputPath,
        help="CSV, Parquet or XLSX with the columns that were learned from",
    )
    add_folder_option(parser)
    add_model_option(parser)
    parser.add_argument(
        "--alpha",
        metavar="X",
        type=float,
        help="share of targets outside their prediction intervals (default: as tuned)",
    )
    add_flags(parser, DataColumns, ("id",))
    add_missing_rows_option(parser)
    add_text_file_options(parser)
    add_file_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Predict, and write the predictions."""
    from ordinate.cli.output import check_output_paths, replace_atomically, write_csv
    from ordinate.render.estimates import format_count
    from ordinate.tuning.search.prediction_table import check_suffix

    if options.output is not None:
        check_suffix(options.output)
    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as out:
        model, predictions = _predict_rows(options)
        if out is None:
            write_csv(predictions.csv(), sys.stdout)
        else:
            predictions.write(out)
            rows = format_count(len(predictions), "row")
            sys.stdout.write(f"{rows} predicted, written to {options.output}.\n")
            sys.stdout.write(_format_next_command(options.output, model, predictions))
    for note in predictions.notes:
        sys.stderr.write(f"{note}\n")
    return 0


def _predict_rows(options: argparse.Namespace) -> "tuple[RegressionModel, Predictions]":
    from ordinate.postprocess.conformal_sets import check_alpha
    from ordinate.tuning.regress.trained_model import load_regression_model

    if options.alpha is not None:
        check_alpha(options.alpha)
    files = {name: getattr(options, name) for name in TEXT_FILE_OPTIONS}
    model = load_regression_model(options.experiment, options.model)
    return model, model.predict_table(
        options.data,
        options.alpha,
        id_column=getattr(options, "id_column", None),
        missing=options.missing or "error",
        **files,
    )


def _format_next_command(path: str, model: "RegressionModel", predictions: "Predictions") -> str:
    """Return the command that evaluates predictions; nothing where there are no targets."""
    from ordinate.scale.labels import is_missing

    targets = predictions.kept.get(model.target)
    if targets is None:
        return ""
    words = ["ordinate", "evaluate-regression", path, "--target", model.target]
    words += ["--predicted", "prediction", "--lower", "lower", "--upper", "upper"]
    words += ["--alpha", f"{predictions.alpha:g}"]
    words += ["--missing", "drop"] if any(map(is_missing, targets)) else []
    words += [] if model.unit is None else ["--unit", model.unit]
    return f"Evaluate them: {shlex.join(words)}\n"
