"""`ordinate predict-regression`: predictions of new rows, with their intervals."""

import argparse
import sys
from typing import Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    TEXT_FILE_OPTIONS,
    add_command,
    add_file_output_options,
    add_folder_option,
    add_model_option,
    add_text_file_options,
    list_inputs,
)

EXAMPLES = """examples:
  ordinate predict-regression new.csv -e found -o predictions.csv
  ordinate predict-regression new.csv -e found --model svr --alpha 0.2

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "predict-regression",
        "Predict new rows with their intervals. Columns: row, prediction, lower, upper and, where "
        "members of an ensemble lie apart, spread. The file is .csv or .parquet.",
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
    add_text_file_options(parser)
    add_file_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Predict, and write the predictions."""
    from ordinate.cli.output import check_output_paths, replace_atomically, write_csv
    from ordinate.render.estimates import format_count
    from ordinate.search.prediction_table import check_suffix

    if options.output is not None:
        check_suffix(options.output)
    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as out:
        predictions = _predict_rows(options)
        if out is None:
            write_csv(predictions.csv(), sys.stdout)
        else:
            predictions.write(out)
            sys.stdout.write(f"{format_count(len(predictions), 'row')} predicted, written to ")
            sys.stdout.write(f"{options.output}.\n")
    for note in predictions.notes:
        sys.stderr.write(f"{note}\n")
    return 0


def _predict_rows(options: argparse.Namespace) -> Any:
    from ordinate.postprocess.conformal_sets import check_alpha
    from ordinate.regress.table import read_features
    from ordinate.regress.trained_model import load_regression_model

    if options.alpha is not None:
        check_alpha(options.alpha)
    tuned = load_regression_model(options.experiment, options.model)
    files = {name: getattr(options, name) for name in TEXT_FILE_OPTIONS}
    return tuned.predict(read_features(options.data, tuned.features, **files), options.alpha)
