"""`ordinate tune-regression`: from a table of numbers to a tuned model in real units."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, StorePath, add_flags, parse_names
from ordinate.cli.options import (
    TEXT_FILE_OPTIONS,
    add_command,
    add_folder_option,
    add_missing_rows_option,
    add_text_file_options,
    write_report,
)
from ordinate.cli.search_runs import (
    add_search_flags,
    build_settings,
    make_origin,
    merge_search_flags,
)
from ordinate.errors import BadOption, BadOutput
from ordinate.readers.columns import ItemColumns
from ordinate.tuning.experiment.data_columns import DataColumns
from ordinate.tuning.regress.settings import Settings

if TYPE_CHECKING:
    from ordinate.results.base import Result
    from ordinate.tuning.regress.table import Table

EXAMPLES = """examples:
  cp "$(python -m ordinate.examples densities)" densities.csv
  ordinate tune-regression densities.csv --target density --unit kg/m³ -e found
  ordinate tune-regression densities.csv --target density -e two --models lightgbm,svr --jobs 2
  ordinate tune-regression densities.csv --target density -e shifted --shift pressure
  ordinate tune-regression densities.csv --target density -e quick --timeout 180
  ordinate tune-regression densities.csv --target density -e gp --models gp --trials 1
  ordinate tune-regression densities.csv --target density -e deep --models mlp \\
    --params '{"mlp": {"members": 16}}'
  ordinate tune-regression densities.csv --target density -e again --params-of found

models: mlp, lightgbm, hist_boosting, gp, kernel_ridge, svr, poly_ridge

Models are selected by rows that are held out of the fits (--folds; 0: by the validation rows); the
rows of the test choose nothing. The first trial of a study has the defaults of its model type. A
run that was killed goes on where it stopped when the same command is given again.
"""

DATA_FLAGS: dict[str, type] = {
    "data": InputPath,
    "target": str,
    "unit": str,
    "features": list,
    "group_column": str,
    **dict.fromkeys(TEXT_FILE_OPTIONS, str),
    "missing": str,
    "params_of": StorePath,
    "experiment": StorePath,
}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "tune-regression",
        "Search several model types, blend the best of each, save them, and test the winner, with "
        "errors and prediction intervals in the unit of the target.",
        EXAMPLES,
    )
    group = parser.add_argument_group("data")
    add = group.add_argument
    add(
        "data",
        nargs="?",
        metavar="DATA",
        type=InputPath,
        help="CSV, Parquet or XLSX, a row per item",
    )
    add_flags(group, ItemColumns, ("target",))
    add("--unit", metavar="UNIT", help="of the targets, such as kg/m³")
    add(
        "--features",
        metavar="A,B,…",
        help="columns to predict from (default: all of numbers but ids)",
    )
    add_flags(group, DataColumns, ("group",))
    add_missing_rows_option(group)
    add_folder_option(group, required=False)
    add(
        "--params-of",
        metavar="DIR",
        type=StorePath,
        help="take the model types and hyperparameters that the search in DIR found",
    )
    add_text_file_options(parser)
    add_search_flags(parser, Settings)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search, and write the report."""
    if options.features is not None:
        options.features = list(parse_names("--features", options.features))
    flags = merge_search_flags(options, Settings, DATA_FLAGS)
    for name, advice in (
        ("data", "Name its file: DATA"),
        ("target", "Name its column: --target COL"),
        ("experiment", "Name the folder of the search: -e DIR"),
    ):
        if name not in flags:
            raise BadOption(f"Which {name}? {advice}.")
    _check_folder(flags["experiment"], flags["data"])
    settings = build_settings(Settings, _add_tuned_params(flags))
    write_report(options, lambda: _run_tuning(flags, settings))
    return 0


def _add_tuned_params(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags with the hyperparameters that an earlier search found."""
    if "params_of" not in flags:
        return flags
    from ordinate.tuning.search.saved_models import read_tuned_params

    found = read_tuned_params(Path(flags["params_of"]))
    named = flags.get("models", list(found))
    if lacking := [name for name in named if name not in found]:
        has = f"It has those of {', '.join(found)}." if found else "It has none."
        raise BadOption(
            f"{flags['params_of']} has no hyperparameters of {', '.join(lacking)}. {has}"
        )
    params = {name: found[name] for name in named} | flags.get("params", {})
    return flags | {"models": named, "params": params}


def _check_folder(folder: str, data: str) -> None:
    """Refuse a folder that is none, or would bury the data."""
    from ordinate.cli.output import follow_links
    from ordinate.render.reserved_paths import RESERVED, refuse_reserved_path

    root = follow_links(folder)
    if root.is_file():
        raise BadOutput(f"{folder} is a file, and -e takes a folder.")
    refuse_reserved_path(root)
    given = follow_links(data)
    parts = given.relative_to(root).parts if given.is_relative_to(root) else ()
    if parts and parts[0] in RESERVED:
        raise BadOutput(
            f"{data} lies where the results would be written. Move it, or name another folder."
        )


def _run_tuning(flags: dict[str, Any], settings: Settings) -> "Result":
    from ordinate.cli.progress import show_stages
    from ordinate.tuning.regress.tuning import COLUMNS, plan_table, tune_table

    table, root, unit = _load_table(flags), flags["experiment"], flags.get("unit")
    if flags.get("dry_run"):
        return plan_table(table, root, settings, unit=unit)
    origin = make_origin("tune-regression", flags, settings, list(DATA_FLAGS), positional="data")
    with show_stages() as show:

        def progress(stage: str, share: float, note: str = "") -> None:
            if stage == COLUMNS:  # is told in a pipe, too
                sys.stderr.write(f"{note}\n")
            show(stage, share, "" if stage == COLUMNS else note)

        return tune_table(table, root, settings, unit=unit, origin=origin, progress=progress)


def _load_table(flags: dict[str, Any]) -> "Table":
    from ordinate.tuning.regress.table import load_table

    return load_table(
        str(flags["data"]),
        flags["target"],
        features=flags.get("features"),
        group_column=flags.get("group_column"),
        missing=flags.get("missing", "error"),
        **{name: flags.get(name) for name in TEXT_FILE_OPTIONS},
    )
