"""`ordinate decode`: predicted probabilities in, the levels that a metric rewards out."""

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import add_column_options
from ordinate.cli.flags import InputPath, add_flags, collect_given, parse_names
from ordinate.cli.options import (
    SCALE_HELP,
    add_command,
    add_metric_file_option,
    add_metric_option,
    add_output_options,
    list_inputs,
    show_report,
)
from ordinate.errors import BadOption
from ordinate.render import FORMATS_BY_SUFFIX

if TYPE_CHECKING:
    from ordinate.results.decoding import Decoding

COLUMNS = ("gold", "probabilities", "id", "renormalize")
EXAMPLES = """examples:
  ordinate decode test.csv --probabilities p_ --fit oof.csv --gold level --metric quadratic_kappa \\
    -o levels.csv
  ordinate decode oof.csv --probabilities p_A1,p_A2,p_B1,p_B2,p_C1,p_C2 --gold level \\
    --metric cem_ord
  ordinate decode test.parquet --probabilities p_ --metric mae --scale 1..5 --id essay -o levels.csv
  ordinate decode test.csv --probabilities p_ --fit oof.csv --gold level --metric macro_mae \\
    --class-weights balanced
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns
    from ordinate.results.decoding import decode

    parser = add_command(
        commands,
        "decode",
        "Turn predicted probabilities into levels, as a metric rewards them. Decoding is fitted on "
        "rows with gold levels, whose probabilities should be out of fold. The levels go to FILE, "
        "or to standard output, with the ids or the numbers of the rows; the report shows argmax "
        "beside the decoded levels, because what one metric gains another may lose.",
        EXAMPLES,
    )
    group = parser.add_argument_group("input")
    add = group.add_argument
    add(
        "file",
        metavar="FILE",
        type=InputPath,
        help="CSV, TSV, JSONL, Parquet or XLSX, also gzipped",
    )
    add_column_options(parser, group, ItemColumns, COLUMNS)
    add("--scale", help=SCALE_HELP)
    add_flags(group, decode, ("fit",))
    add(
        "--class-weights",
        metavar="W",
        help="weights that the model was fitted with, to be undone: balanced, one for each level "
        "in the order of the scale (2,1,1), or by level (low=2,mid=1,high=1)",
    )
    group = parser.add_argument_group("metric and confidence intervals")
    add_metric_option(group)
    add_metric_file_option(group)
    add_flags(group, decode, without=("fit",))
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Decode, write the levels, and report beside argmax."""
    from ordinate.cli.output import check_output_paths, replace_atomically, write_csv

    _refuse_report_suffix(options.output)
    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as out:
        result = _decode_file(options)
        levels = result.to_csv("levels")
        if out is None:
            write_csv(levels, sys.stdout)
            show_report(options, result, sys.stderr)
        else:
            out.write_bytes(levels.encode())
            show_report(options, result, sys.stdout)
    return 0


def _refuse_report_suffix(output: str | None) -> None:
    """Refuse the name of a report for the file of the levels: whoever opens it goes by that."""
    from pathlib import Path

    suffix = "" if output is None else Path(output).suffix.lower()
    if suffix not in {"", ".csv"}:
        report = FORMATS_BY_SUFFIX.get(suffix)
        way = f"-o levels.csv --format {report} > report{suffix}" if report else "-o levels.csv"
        raise BadOption(
            f"-o is for the levels, which are CSV, and not for a report (*{suffix}). The report "
            f"goes to standard output: {way}"
        )


def _decode_file(options: argparse.Namespace) -> "Decoding":
    from ordinate.cli.progress import show_share, watch_files
    from ordinate.readers.columns import Files
    from ordinate.results.decoding import decode

    if not hasattr(options, "probabilities"):
        raise BadOption("Name the columns of the probabilities, or their prefix: --probabilities.")
    watch = partial(watch_files, roles=("gold",))
    with show_share("comparing") as progress:
        return decode(
            Files(options.file, watch=watch, **collect_given(options, Files)),
            metric=options.metric,
            **{name: getattr(options, name) for name in COLUMNS if hasattr(options, name)},
            **collect_given(options, decode),
            scale=options.scale,
            class_weights=_parse_class_weights(options.class_weights),
            progress=progress,
        )


def _parse_class_weights(text: str | None) -> Any:
    """Return 'balanced', numbers in the order of the scale, or numbers by level."""
    if text is None or text == "balanced":
        return text
    parts = parse_names("--class-weights", text)
    try:
        if any("=" in part for part in parts):
            pairs = [part.rpartition("=") for part in parts]
            return {level: float(weight) for level, _, weight in pairs}
        return [float(part) for part in parts]
    except ValueError:
        raise BadOption(
            f"--class-weights takes balanced, 2,1,1 or low=2,mid=1,high=1, not {text!r}."
        ) from None
