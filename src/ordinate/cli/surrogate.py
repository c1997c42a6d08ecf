"""`ordinate surrogate`: from a table of numbers to a tuned regression model in real units."""

import argparse
import sys
from typing import Any

from ordinate.cli.flags import InputPath, StorePath
from ordinate.cli.options import (
    EXIT_CODES,
    HelpFormatter,
    add_output_options,
    add_subcommand,
    add_text_file_options,
    list_inputs,
    write_report,
)
from ordinate.cli.surrogate_runs import RESULTS_ROOT, add_run_commands
from ordinate.errors import BadInput

EXAMPLES = f"""examples:
  cp "$(python -m ordinate.examples densities)" densities.csv
  ordinate surrogate tune densities.csv --target density --unit kg/m³
  ordinate surrogate tune densities.csv --target density --model lightgbm,svr --trials 20 --jobs 2
  ordinate surrogate tune densities.csv --target density --shift pressure -o shifted
  ordinate surrogate tune densities.csv --target density --timeout 180 -o results
  ordinate surrogate train densities.csv --target density --model gp -o gp
  ordinate surrogate ensemble densities.csv --target density --model gp,svr,lightgbm -o three
  ordinate surrogate ensemble densities.csv --target density --model mlp --members 16 -o networks
  ordinate surrogate predict results new.csv -o predictions.csv
  ordinate surrogate analyze results --format json
  ordinate surrogate compare results gp three

ordinate surrogate COMMAND --help explains a command.

{EXIT_CODES}"""


def add_to(commands: Any) -> None:
    """Add the command and its sub-commands to the parser."""
    parser = commands.add_parser(
        "surrogate",
        help="find the best regression model for a table of numbers",
        description="Tune, train, blend and apply surrogate models: regression from numbers, with "
        "errors and intervals in the unit of the target.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    several = parser.add_subparsers(dest="surrogate", metavar="COMMAND", required=True)
    add_run_commands(several)
    _add_predict(several)
    _add_analyze(several)
    _add_compare(several)


def _add_predict(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "predict",
        "predict new rows with a saved surrogate",
        "Predict new rows with their intervals. Columns: row, prediction, lower, upper and, where "
        "members of an ensemble lie apart, spread.",
    )
    add = parser.add_argument
    add("results", metavar="DIR", type=StorePath, help="results folder of a search")
    add(
        "data",
        metavar="DATA",
        type=InputPath,
        help="CSV or Parquet with the columns that were learned from",
    )
    add(
        "--name",
        metavar="NAME",
        help="saved surrogate, or how its name alone begins (default: the latest winner)",
    )
    add("--alpha", type=float, help="share of targets outside their intervals (default: as tuned)")
    add_text_file_options(parser)
    add("-o", "--output", metavar="OUT", help=".csv or .parquet (default: CSV, standard output)")
    add("--force", action="store_true", help="overwrite existing outputs")
    parser.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace) -> int:
    """Predict, and write the predictions."""
    from ordinate.cli.output import check_output_paths, replace_atomically
    from ordinate.regress.trained_model import check_suffix

    if options.output is not None:
        check_suffix(options.output)
    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as out:
        found = _predict_rows(options)
        if out is None:
            sys.stdout.write(found.csv())
        else:
            found.write(out)
    for note in found.notes:
        sys.stderr.write(f"{note}\n")
    return 0


def _predict_rows(options: argparse.Namespace) -> Any:
    from ordinate.postprocess.conformal_sets import check_alpha
    from ordinate.regress.table import read_features
    from ordinate.regress.trained_model import load_surrogate

    if options.alpha is not None:
        check_alpha(options.alpha)
    surrogate = load_surrogate(options.results, options.name)
    separator = options.delimiter
    features = read_features(
        options.data, surrogate.features, delimiter=separator, encoding=options.encoding
    )
    return surrogate.predict(features, options.alpha)


def _add_analyze(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "analyze",
        "show what a search found",
        "Show the metrics of a search with their intervals, which parameters mattered, and how "
        "fits went (learning curves as data: --format json or csv).",
    )
    parser.add_argument(
        "results",
        metavar="DIR",
        nargs="?",
        default=RESULTS_ROOT,
        type=StorePath,
        help="results folder",
    )
    add_output_options(parser)
    parser.set_defaults(run=run_analyze)


def run_analyze(options: argparse.Namespace) -> int:
    """Analyse, and write the report."""
    from ordinate.regress.analysis import analyze_search

    write_report(options, lambda: analyze_search(options.results))
    return 0


def _add_compare(commands: Any) -> None:
    parser = add_subcommand(
        commands,
        "compare",
        "compare the winners of several searches, or the finalists of one",
        "Compare surrogates on the same test rows: differences of RMSE, MAE and R² with intervals.",
    )
    parser.add_argument("results", metavar="DIR", nargs="+", type=StorePath, help="results folders")
    add_output_options(parser)
    parser.set_defaults(run=run_compare)


def run_compare(options: argparse.Namespace) -> int:
    """Compare, and write the report."""
    from ordinate.regress.analysis import compare_searches

    if len(set(options.results)) < len(options.results):
        raise BadInput("The same results folder is named twice.")
    write_report(options, lambda: compare_searches(options.results))
    return 0
