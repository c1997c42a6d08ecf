"""Options that several commands share, and their parsing."""

import argparse
import math
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar

from ordinate.cli.file_options import SYSTEM_COLUMNS, add_column_options
from ordinate.cli.flags import InputPath, StorePath, add_flags, collect_given
from ordinate.cli.help import HelpFormatter
from ordinate.errors import BadOption, BadOutput, OffScale, OrdinateError, shorten
from ordinate.readers.columns import LabelMapFile, TidyLabels
from ordinate.render import (
    FORMATS_BY_SUFFIX,
    RENDERERS,
    Renderable,
    find_terminal_width,
    render,
)
from ordinate.settings import Level, Resamples, Seed, Setting, list_settings

if TYPE_CHECKING:
    from ordinate.inference import ConfidenceIntervals
    from ordinate.metrics import Metric
    from ordinate.results.base import Result
    from ordinate.results.comparison_settings import ComparisonSettings
    from ordinate.tuning.experiment.folder import Experiment


R = TypeVar("R", bound=Renderable)
MOST_LISTED = 20  # labels in a sentence
REPORT_FORMATS = tuple(RENDERERS)
BELOW_THRESHOLD_CODE = 3  # the exit code of --fail-under
# Options of files that are tables.
TEXT_FILE_OPTIONS = ("delimiter", "encoding", "decimal", "bad_lines", "sheet")
EXIT_CODES = "exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted\n"


SCALE_HELP = (
    "a preset (cefr, likert5, likert7, stars5, sentiment3, sentiment5), integers (1..6), or labels "
    "from lowest to highest (low,mid,high) (default: the preset that has all labels)"
)


def add_command(
    commands: Any,
    name: str,
    description: str,
    examples: str = "",
    summary: str | None = None,
    *,
    exit_codes: str = EXIT_CODES,
) -> argparse.ArgumentParser:
    """Add a command, or with a summary of it a subcommand, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog="\n".join(filter(None, [examples, exit_codes])),
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    return parser


def add_file_option(parser: argparse._ActionsContainer, further: str = "", **more: Any) -> None:
    """Add the files that a command reads."""
    parser.add_argument(
        "files",
        metavar="FILE",
        type=InputPath,
        help=f"CSV, TSV, JSONL, Parquet or XLSX, also gzipped{further}",
        **{"nargs": "+", **more},
    )


def add_label_options(
    parser: argparse._ActionsContainer, apart: argparse._ActionsContainer, *without: str
) -> None:
    """Add the options of labels: scale, missing labels, and `apart`, with files, new names."""
    parser.add_argument("--scale", help=SCALE_HELP)
    add_flags(apart, LabelOptions, without=without)
    add_map_proposal_option(apart)
    add_missing_option(parser)


def add_map_proposal_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that writes a label map for labels that are not on the scale."""
    parser.add_argument(
        "--propose-map",
        metavar="FILE",
        help="where labels are not on the scale, write a label map (--map) to look through: the "
        "nearest level of each, and nothing where none is near",
    )


def add_missing_option(parser: argparse._ActionsContainer) -> None:
    """Add the policy for missing labels, targets and predictions."""
    parser.add_argument(
        "--missing",
        choices=("error", "drop", "worst"),
        default="error",
        help="policy for what is missing: refuse it, leave the item out, or count the worst "
        "prediction (default: error)",
    )


def add_missing_rows_option(parser: argparse._ActionsContainer) -> None:
    """Add the policy for rows of a table in which a number is missing."""
    parser.add_argument(
        "--missing",
        choices=("error", "drop"),
        help="policy for rows with a cell that is empty or no number: refuse them with their "
        "places, or leave them out and count them (default: error)",
    )


def add_system_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of files and columns of several systems, and return their group."""
    from ordinate.readers.columns import ItemColumns

    group = parser.add_argument_group("input")
    add_file_option(
        group,
        ": one file whose columns are systems, or a file of gold levels and then one for each run",
        nargs="*",
    )
    apart = add_column_options(parser, group, ItemColumns, SYSTEM_COLUMNS, databases=True)
    add_label_options(group, apart)
    return group


@dataclass(frozen=True)
class IntervalOptions:
    """What commands say of confidence intervals; those who compute them know the bounds."""

    level: Level = 0.95
    resamples: Resamples = 2_000
    seed: Seed = 0


@dataclass(frozen=True)
class LabelOptions:
    """How labels become levels."""

    label_map: LabelMapFile = None
    tidy_labels: TidyLabels = None
    edges: Annotated[
        tuple[str, ...],
        Setting(
            "rising numbers between levels, such as 1.5,2.5, by which numbers are evaluated as "
            "levels (with evaluate, predicted ones as those of the scale); one that equals an edge "
            "is of the level above it",
            metavar="X,Y,…",
        ),
    ] = ()


@dataclass(frozen=True)
class CaseColumns:
    """Which column holds the cases that metrics are averaged over, and how."""

    average_over: Annotated[
        str | None,
        Setting(
            "column of cases (topics, prompts, writers), over which metrics are averaged as well",
            metavar="COL",
        ),
    ] = None
    fixed_cases: Annotated[
        bool | None,
        Setting(
            "means over cases are about these very cases, and their items are the sample",
            default="no, and yes with --scale-by",
        ),
    ] = None
    scale_by: Annotated[
        str | None,
        Setting(
            "column of cases, and a file with the scale of each (CSV with the header case,scale, "
            "or a JSON object): each case is evaluated on its own scale, and nothing is pooled",
            metavar="COL=FILE",
        ),
    ] = None


def add_metrics_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that names metrics."""
    help_ = "names or expressions separated by commas, or all"
    parser.add_argument("--metrics", metavar="LIST", help=help_)


def add_metric_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that names the one metric of a command."""
    help_ = "name or expression of one metric of labels (default: cem_ord)"
    parser.add_argument("--metric", metavar="METRIC", default="cem_ord", help=help_)


def add_text_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of text files and spreadsheets."""
    from ordinate.readers.columns import FileOptions

    parser.set_defaults(**dict.fromkeys(TEXT_FILE_OPTIONS))
    add_flags(parser, FileOptions, TEXT_FILE_OPTIONS)


def add_output_options(parser: argparse._ActionsContainer) -> None:
    """Add the options of the report: format and file."""
    add_file_output_options(parser)
    add_format_option(parser)
    parser.add_argument(
        "--details",
        action="store_true",
        default=None,
        help="show on the terminal what files have: full names of models, large tables",
    )


def add_format_option(parser: argparse._ActionsContainer) -> None:
    """Add the option of the format of a report."""
    parser.add_argument(
        "--format",
        choices=REPORT_FORMATS,
        help="of the report (default: by the suffix of its file, "
        f"{', '.join(FORMATS_BY_SUFFIX)}, or text)",
    )


def add_file_output_options(parser: argparse._ActionsContainer) -> None:
    """Add the options of the file that a command writes."""
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        help="where to write what the command makes (default: standard output)",
    )
    add_force_option(parser)


def add_force_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that overwrites."""
    parser.add_argument("--force", action="store_true", help="overwrite existing outputs")


def add_threshold_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that makes a command fail."""
    parser.add_argument(
        "--fail-under",
        metavar="METRIC=VALUE",
        action="append",
        default=[],
        help="exit with 3 if a metric is worse than a value; may be repeated",
    )
    parser.add_argument(
        "--fail-when",
        choices=("worse", "significant"),
        default="worse",
        help="if the value is worse, or only if the whole interval is, with a "
        "warning where it is not (default: worse)",
    )


def add_metric_file_option(parser: argparse._ActionsContainer) -> None:
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
    parser: argparse.ArgumentParser, *, required: bool = True, **folder: Any
) -> None:
    """Add the options that say where an experiment lies and what its columns are."""
    from ordinate.tuning.experiment.data_columns import DataColumns

    group = parser.add_argument_group("experiment")
    add_folder_option(group, required=required, **folder)
    group.add_argument(
        "--features-base-dir",
        metavar="DIR",
        type=InputPath,
        help="folder of the feature sets (default: features in the experiment)",
    )
    add_flags(group, DataColumns)
    parser.set_defaults(**{one.key: None for one in list_settings(DataColumns)})
    group.add_argument("--scale", help=SCALE_HELP)
    add_map_proposal_option(group)


def add_folder_option(
    parser: argparse._ActionsContainer, *, required: bool = True, **more: Any
) -> None:
    """Add the option that names the folder of long work."""
    parser.add_argument(
        *("-e", "--experiment"),
        metavar="DIR",
        type=StorePath,
        required=required,
        help="folder of the experiment, as `ordinate init` lays it out, or of a search",
        **more,
    )


def add_model_option(parser: argparse._ActionsContainer) -> None:
    """Add the option that names a saved model."""
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="saved model, or how its name alone begins (default: the winner of the latest run)",
    )


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


def write_report(options: argparse.Namespace, make: Callable[[], R]) -> R:
    """Write the report of a result and return it: made when the output is known to be writable."""
    if options.output is None:
        result = make()
        show_report(options, result, sys.stdout)
        return result
    from ordinate.cli.output import check_output_paths, replace_with_companion

    check_output_paths(list_inputs(options), [options.output])
    shown = options.format or _infer_format(options.output)
    with replace_with_companion(options.output, force=options.force) as (report, store):
        result = make()
        text = render(result, shown, details=options.details, store=store)
        report.write_text(text, encoding="utf-8", errors="replace")
    return result


def show_report(options: argparse.Namespace, result: Any, stream: TextIO) -> None:
    """Write the report of a result to a stream, fitted to the terminal if it is one."""
    text = render(
        result,
        options.format or "text",
        width=find_terminal_width(),
        details=options.details,
    )
    if options.format == "csv":
        from ordinate.cli.output import write_csv

        write_csv(text, stream)
    else:
        stream.write(text)


def _infer_format(output: str) -> str:
    """Return the format that a file is to have by its suffix: whoever opens it goes by that."""
    from pathlib import Path

    suffix = Path(output).suffix.lower()
    if suffix and suffix not in FORMATS_BY_SUFFIX:
        known = ", ".join(FORMATS_BY_SUFFIX)
        raise BadOutput(
            f"-o {shorten(output)} has no known suffix. There are: {known}; or say --format."
        )
    return FORMATS_BY_SUFFIX.get(suffix, "text")


def collect_columns(options: argparse.Namespace) -> dict[str, Any]:
    """Return the columns that were named, and how labels become levels, as functions take them."""
    from ordinate.readers.columns import Files, ItemColumns

    of_files = {x.name for x in list_settings(Files)}
    given = collect_given(options, ItemColumns, LabelOptions)
    given = {name: value for name, value in given.items() if name not in of_files}
    if "label_map" in given:
        from ordinate.scale.declaration_files import read_label_map

        given["label_map"] = read_label_map(given["label_map"])
    return given


def write_proposed_map(options: argparse.Namespace, problem: OffScale) -> int:
    """Write a label map for labels that are not on the scale, and say what it needs."""
    from ordinate.cli.output import check_output_paths, replace_atomically
    from ordinate.scale.declaration_files import format_label_map, read_label_map

    path, proposed = options.propose_map, problem.proposed_map
    given = {} if getattr(options, "map", None) is None else read_label_map(options.map)
    check_output_paths(list_inputs(options), [path])
    with replace_atomically(path, force=getattr(options, "force", False)) as out:
        assert out is not None  # noqa: S101 - a path was given
        known = {label: proposed.get(level, level) for label, level in given.items()}
        out.write_text(format_label_map(known | proposed), encoding="utf-8")
    lacking = [shorten(label) for label, level in proposed.items() if level is None]
    shown = ", ".join(lacking[:MOST_LISTED]) + (", …" if len(lacking) > MOST_LISTED else "")
    more = f" No level is near {shown}: fill it in, or it is missing (--missing drop)."
    more = more if lacking else ""
    print(
        f"{path} proposes a level for {len(proposed) - len(lacking)} of {len(proposed)} unknown "
        f"labels.{more} Look through it, and run again with --map {shlex.quote(path)}."
    )
    return 0


def open_experiment(options: argparse.Namespace) -> "Experiment":
    """Return the experiment that the options name."""
    from ordinate.tuning.experiment.data_columns import DataColumns
    from ordinate.tuning.experiment.folder import Experiment

    if options.experiment is None:
        raise BadOption("Which experiment? Name its folder with -e DIR (--experiment).")
    columns = DataColumns(**collect_given(options, DataColumns))
    return Experiment.open(
        options.experiment, features_dir=options.features_base_dir, columns=columns
    )


def parse_intervals(
    options: argparse.Namespace, *, method: Any = None, stratified: bool = False
) -> "ConfidenceIntervals | None":
    """Return the settings of confidence intervals, None for none."""
    from ordinate.inference import ConfidenceIntervals

    given = collect_given(options, IntervalOptions)
    if given.get("level", ...) is None:
        return None
    return ConfidenceIntervals(**given, method=method, stratified=stratified)


def parse_comparison_settings(options: argparse.Namespace, **further: Any) -> "ComparisonSettings":
    """Return the settings of a comparison, checked before anything is read."""
    from ordinate.results.comparison_settings import ComparisonSettings

    settings = ComparisonSettings(**collect_given(options, IntervalOptions), **further)
    _ = settings.intervals  # refuses a level, resamples and a seed that make no sense
    return settings


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


def check_thresholds(
    options: argparse.Namespace, result: "Result", thresholds: "Iterable[tuple[Metric, float]]"
) -> int:
    """Return the exit code of metrics and what they have to reach; say which do not."""
    code = 0
    for metric, threshold in thresholds:
        from ordinate.results.thresholds import compare_with_threshold, find_score

        score = find_score(result, metric)
        if options.fail_when == "worse":
            score = score.drop_interval()
        verdict, sentence = compare_with_threshold(score, threshold)
        if verdict == "worse":
            sys.stderr.write(f"ordinate: {sentence}\n")
            code = BELOW_THRESHOLD_CODE
        elif verdict == "inconclusive":
            sys.stderr.write(f"ordinate: warning: {sentence}\n")
    return code
