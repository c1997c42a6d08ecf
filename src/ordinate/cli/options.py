"""Options that several commands share, and their parsing."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, StorePath, parse_names
from ordinate.errors import BadOption, OrdinateError
from ordinate.render import FORMATS_BY_SUFFIX, RENDERERS, find_terminal_width, render

if TYPE_CHECKING:
    from ordinate.experiment.folder import Experiment
    from ordinate.metrics import Metric
    from ordinate.readers.systems import PanelData
    from ordinate.results.leaderboard import ComparisonSettings


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose sentences are wrapped, and whose examples stand as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else fill(text, width, initial_indent=indent)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, argparse.BooleanOptionalAction):
            return ", ".join(action.option_strings[:-1]).replace("--", "--[no-]")
        return super()._format_action_invocation(action)


REPORT_FORMATS = tuple(RENDERERS)
EXIT_CODES = "exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted\n"


def add_subcommand(
    commands: Any, name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """Add a subcommand of a command, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=EXIT_CODES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    return parser


def add_label_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of labels: scale, weights, clusters, missing labels."""
    add = parser.add_argument
    add(
        "--scale",
        help="a preset (cefr, likert5, likert7, stars5, sentiment3, sentiment5), "
        "integers (1..6), or labels from lowest to highest (low,mid,high)",
    )
    add(
        "--map",
        metavar="FILE",
        type=InputPath,
        help="labels to rename before the scale sees them: a JSON object, "
        "or CSV with the header from,to",
    )
    add("--weights", metavar="COL", help="column of item weights")
    add(
        "--groups",
        metavar="COL",
        help="column of clusters of items (writers, topics, documents): confidence intervals "
        "resample clusters",
    )
    add(
        "--missing",
        choices=("error", "drop", "worst"),
        default="error",
        help="policy for missing labels (default: error)",
    )
    add_text_file_options(parser)


def add_text_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of text files: delimiter and encoding."""
    add = parser.add_argument
    add("--delimiter", metavar="CHAR", help="what separates columns (default: by the first lines)")
    add("--encoding", help="of text files (default: utf-8)")


def add_system_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of files and columns of several systems."""
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        type=InputPath,
        help="CSV, TSV, JSONL or Parquet, also gzipped: one file whose columns are systems, or a "
        "file of gold levels and then one for each run",
    )
    add("--gold", metavar="COL", help="column of the gold levels")
    add("--systems", metavar="A,B,…", help="columns of the systems")
    add("--id", metavar="COL", help="column by which runs are joined to the gold file")
    add("--predicted", metavar="COL", help="column of the predicted levels in each run")
    add_label_options(parser)


def add_resampling_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of confidence intervals and bootstrap resamples."""
    add = parser.add_argument
    add(
        "--interval",
        metavar="LEVEL",
        type=float,
        default=0.95,
        help="level of the confidence intervals (default: 0.95)",
    )
    add(
        "--resamples", metavar="N", type=int, default=2_000, help="of the bootstrap (default: 2000)"
    )
    add("--seed", type=int, default=0, help="of the resamples (default: 0)")


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the report: format and file."""
    add = parser.add_argument
    add(
        "--format",
        choices=REPORT_FORMATS,
        help="of the report (default: by the suffix of OUT, "
        f"{', '.join(FORMATS_BY_SUFFIX)}, or text)",
    )
    add(
        "-o", "--output", metavar="OUT", help="where to write the report (default: standard output)"
    )
    add("--force", action="store_true", help="overwrite existing outputs")


def add_metric_file_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that brings metrics of the user's own."""
    parser.add_argument(
        "--load",
        metavar="FILE.py",
        action="append",
        type=InputPath,
        default=[],
        help="a Python file of your own that declares further metrics with @ordinate.metric(…); "
        "it is run; may be repeated",
    )


def add_experiment_options(
    parser: argparse.ArgumentParser, *, required: bool = True, labels: bool = True
) -> None:
    """Add the options that say where an experiment lies and what its columns are.

    A command that has --scale, --delimiter and --encoding already passes `labels=False`.
    """
    add = parser.add_argument
    add(
        "-e",
        "--experiment",
        metavar="DIR",
        type=StorePath,
        required=required,
        help="folder of the experiment, as `ordinate init` lays it out",
    )
    add(
        "--features-base-dir",
        metavar="DIR",
        type=InputPath,
        help="folder of the feature sets (default: features in the experiment)",
    )
    add("--label-column", metavar="COL", help="column of the levels (default: by its name)")
    add("--text-column", metavar="COL", help="column of the texts (default: by its name)")
    add("--id-column", metavar="COL", help="column of the ids (default: by its name)")
    add("--group-column", metavar="COL", help="column of clusters of items (writers, …)")
    if labels:
        add(
            "--scale",
            help="a preset (cefr, likert5, likert7, stars5, sentiment3, sentiment5), integers "
            "(1..6), or labels from lowest to highest (low,mid,high); default: the preset that "
            "fits the training data",
        )
        add_text_file_options(parser)


def load_metric_files(paths: Iterable[str]) -> None:
    """Run the Python files that declare metrics, which the user asked for by name."""
    import runpy
    from pathlib import Path

    for path in paths:
        if Path(path).suffix != ".py" or not Path(path).is_file():
            raise BadOption(f"--load takes a Python file, which {path!r} is not.")
        try:
            runpy.run_path(path)
        except OrdinateError:
            raise
        except (Exception, SystemExit) as problem:  # whatever the user's code does
            what = f"{type(problem).__name__}: {problem}"
            raise BadOption(f"{path} cannot be loaded: {what}") from problem


def list_inputs(options: argparse.Namespace) -> list[str]:
    """Return every path that the options name as something to read."""
    values = [x for value in vars(options).values() for x in _wrap_in_list(value)]
    return [value for value in values if isinstance(value, InputPath)]


def _wrap_in_list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [value]


def write_report(options: argparse.Namespace, result: Callable[[], Any]) -> None:
    """Write the report of a result, which is made when the output is known to be writable."""
    from ordinate.cli.output import check_output_paths, replace_atomically

    check_output_paths(list_inputs(options), [options.output])
    with replace_atomically(options.output, force=options.force) as report:
        width = find_terminal_width() if report is None else None
        shown = options.format or _infer_format(options.output)
        details = getattr(options, "details", None)
        text = render(result(), shown, width=width, details=details)
        if report is None:
            sys.stdout.write(text)
        else:
            report.write_text(text, encoding="utf-8", errors="replace")


def _infer_format(output: str | None) -> str:
    """Return the format that a file is to have by its suffix: whoever opens it goes by that."""
    from pathlib import Path

    return "text" if output is None else FORMATS_BY_SUFFIX.get(Path(output).suffix.lower(), "text")


def read_systems(
    options: argparse.Namespace, admit: Callable[[int], None] = lambda _: None
) -> "PanelData":
    """Read the systems that the options of `add_systems` name, if their number is admitted."""
    from ordinate.cli.progress import watch_queries
    from ordinate.readers import read_label_map
    from ordinate.readers.systems import SystemColumns, count_systems
    from ordinate.scale import Scale

    columns = SystemColumns(
        gold=options.gold,
        systems=() if options.systems is None else parse_names("--systems", options.systems),
        predicted=options.predicted,
        weights=options.weights,
        groups=options.groups,
        id=options.id,
        delimiter=parse_delimiter(options.delimiter),
        encoding=options.encoding,
        renamed=read_label_map(options.map) if options.map else {},
    )
    scale = Scale.of(options.scale) if options.scale is not None else None
    return count_systems(
        options.files, columns, scale, options.missing, watch=watch_queries, admit=admit
    )


def open_experiment(options: argparse.Namespace) -> "Experiment":
    """Return the experiment that the options name."""
    from ordinate.experiment.dataset import DataColumns
    from ordinate.experiment.folder import Experiment

    columns = DataColumns(
        options.label_column,
        options.text_column,
        options.id_column,
        options.group_column,
        parse_delimiter(options.delimiter),
        options.encoding,
    )
    return Experiment.open(
        options.experiment, features_dir=options.features_base_dir, columns=columns
    )


def parse_comparison_settings(options: argparse.Namespace, **further: Any) -> "ComparisonSettings":
    """Return the settings of a comparison, checked before anything is read."""
    from ordinate.results.leaderboard import ComparisonSettings

    settings = ComparisonSettings(
        level=options.interval, resamples=options.resamples, seed=options.seed, **further
    )
    _ = settings.intervals  # refuses a level, resamples and a seed that make no sense
    return settings


def parse_delimiter(text: str | None) -> str | None:
    """Return the character that separates columns."""
    if text is None:
        return None
    character = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(character) != 1 or character in '\r\n"':
        raise BadOption(f"--delimiter takes one character, such as ';' or '\\t', not {text!r}.")
    return character


def parse_metric_value(
    option: str, text: str, summary: type | None = None
) -> "tuple[Metric, float]":
    """Return metric and number of METRIC=VALUE; a metric of labels unless said otherwise."""
    from ordinate.metrics import find_metric

    expression, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not expression or math.isnan(value):
        raise BadOption(f"{option} takes METRIC=VALUE, such as cem_ord=0.7, not {text!r}.")
    return (find_metric(expression) if summary is None else find_metric(expression, summary)), value
