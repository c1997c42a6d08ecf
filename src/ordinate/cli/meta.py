"""`ordinate meta`: systems of an evaluation campaign in, which metric deserves trust out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    HelpFormatter,
    add_metric_file_option,
    add_output_options,
    add_text_file_options,
    parse_delimiter,
    read_systems,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.meta.meta_evaluation import MetaEvaluation
    from ordinate.results import Origin
    from ordinate.summaries import Panel

DEFAULT_RESAMPLES = 1_000

DESCRIPTION = """\
Meta-evaluation of metrics on systems that predict the same items: which metric
captures all quality aspects that reference metrics stand for (coverage), ranks
systems alike in every test case (robustness, stability) and separates them
(discriminative power). Each file is the run of a system and --gold the file of
gold levels; or, with --systems, the systems are columns of one file and --gold
is one, too.
"""

EXAMPLES = """examples:
  ordinate meta runs/*.tsv --gold gold.tsv
  ordinate meta runs --gold gold.tsv --test-case entity --id tweet --value polarity --lenient
  ordinate meta results.csv --gold level --systems a,b,c --test-case topic
  ordinate meta results.csv --gold level --systems a,b,c --cases 20 --references accuracy,mae
  ordinate meta results.csv --gold level --systems a,b,c --metrics all --format json -o meta.json

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "meta",
        help="meta-evaluation: which metrics deserve trust on your systems",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    _add_file_options(parser)
    add = parser.add_argument
    add("--metrics", metavar="LIST", help="names or expressions separated by commas, or all")
    add(
        "--references",
        metavar="LIST",
        help="metrics that together stand for quality "
        "(default: accuracy,kendall_tau_a,mutual_information)",
    )
    add(
        "--unanimity",
        choices=("weak", "strict"),
        default="weak",
        help="what an improvement for all references is: no loss, or a gain for each "
        "(default: weak)",
    )
    add(
        "--cases",
        metavar="N",
        type=int,
        default=10,
        help="parts of the items at random, where fewer than two test cases are named "
        "(default: 10)",
    )
    add(
        "--alpha",
        type=float,
        default=0.05,
        help="level at which systems are significantly different (default: 0.05)",
    )
    add(
        "--interval",
        metavar="LEVEL",
        type=float,
        default=0.95,
        help="level of the confidence intervals (default: 0.95)",
    )
    add(
        "--resamples",
        metavar="N",
        type=int,
        default=DEFAULT_RESAMPLES,
        help=f"of test cases and systems (default: {DEFAULT_RESAMPLES})",
    )
    add("--seed", type=int, default=0, help="of everything that is drawn (default: 0)")
    add_output_options(parser)
    add_metric_file_option(parser)
    parser.set_defaults(run=run)


def _add_file_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="RUN",
        type=InputPath,
        help="the runs, one file for each system (files, patterns or folders); with --systems, "
        "one file whose columns are systems",
    )
    add("--gold", metavar="FILE|COL", help="file of the gold levels; with --systems, their column")
    add("--systems", metavar="A,B,…", help="columns of the systems, in one file")
    add("--test-case", metavar="COL", help="column of the test cases (topics, companies, writers)")
    add("--id", metavar="COL", help="column of the items in gold and runs")
    add("--value", metavar="COL", help="column of the levels in gold and runs")
    add("--scale", help="a preset, integers (1..6), or labels from lowest to highest")
    add(
        "--map",
        metavar="FILE",
        type=InputPath,
        help="labels to rename: a JSON object, or CSV with from,to",
    )
    add(
        "--lenient",
        action="store_true",
        help="leave lines out that cannot be used, and count them",
    )
    add(
        "--missing",
        choices=("error", "drop", "worst"),
        help="policy for missing labels (default: error; with --lenient, drop)",
    )
    add_text_file_options(parser)


def run(options: argparse.Namespace) -> int:
    """Evaluate metrics, and write the report."""
    if options.systems is None and options.gold is not None:
        options.gold = InputPath(options.gold)  # a file, and no column
    write_report(options, lambda: _evaluate_metrics(options))
    return 0


def _evaluate_metrics(options: argparse.Namespace) -> "MetaEvaluation":
    from ordinate.cli.progress import show_share
    from ordinate.meta.meta_evaluation import (
        REFERENCE_METRICS,
        MetaEvaluationSettings,
        evaluate_metrics,
    )
    from ordinate.results import select_metrics

    metrics = None if options.metrics is None else select_metrics(options.metrics)
    references = select_metrics(
        REFERENCE_METRICS if options.references is None else options.references
    )
    MetaEvaluationSettings(
        options.interval, options.resamples, options.seed, options.alpha, options.unanimity
    )
    panel, origin, irregular = (
        _read_wide_file if options.systems is not None else _read_campaign_files
    )(options)
    with show_share("evaluating metrics") as progress:
        return evaluate_metrics(
            panel,
            metrics,
            references,
            cases=options.cases,
            seed=options.seed,
            level=options.interval,
            resamples=options.resamples,
            alpha=options.alpha,
            unanimity=options.unanimity,
            origin=origin,
            irregular=irregular,
            progress=progress,
        )


LoadedPanel = tuple["Panel", "Origin", list[dict[str, Any]]]


def _read_wide_file(options: argparse.Namespace) -> LoadedPanel:
    """Read the systems that are columns of one file."""
    from ordinate.results import Origin

    for option in ("id", "value"):
        if getattr(options, option) is not None:
            raise BadOption(f"--{option} is for runs in their own files, not for --systems.")
    if options.lenient:
        raise BadOption("--lenient is for runs in their own files, not for --systems.")
    options.groups, options.predicted, options.weights = options.test_case, None, None
    options.missing = options.missing or "error"
    found = read_systems(options, lambda systems: _check_systems(options, systems))
    origin = Origin(gold=found.gold, files=found.files, notes=found.notes)
    return found.panel, origin, []


def _check_systems(options: argparse.Namespace, systems: int) -> None:
    """Refuse a number of systems before they are read; named test cases are two at least."""
    from ordinate.meta.meta_evaluation import check_pair_count

    check_pair_count(systems, options.cases if options.test_case is None else 2)


def _read_campaign_files(options: argparse.Namespace) -> LoadedPanel:
    """Read a file of gold levels and one for each run."""
    from dataclasses import asdict

    from ordinate.cli.progress import watch_queries
    from ordinate.readers import read_label_map
    from ordinate.readers.campaign import CampaignColumns, read_campaign
    from ordinate.results import Origin
    from ordinate.scale import Scale

    if options.gold is None:
        raise BadOption(
            "Name the file of gold levels with --gold, or the columns of one file with --systems."
        )
    columns = CampaignColumns(
        test_case=options.test_case,
        id=options.id,
        value=options.value,
        delimiter=parse_delimiter(options.delimiter),
        encoding=options.encoding,
        renamed=read_label_map(options.map) if options.map else {},
    )
    scale = None if options.scale is None else Scale.of(options.scale)
    found = read_campaign(
        options.gold,
        options.files,
        columns,
        scale,
        options.missing,
        lenient=options.lenient,
        watch=watch_queries,
    )
    origin = Origin(
        options.gold, files=found.files, match_counts=found.match_counts, notes=found.notes
    )
    return found.panel, origin, [asdict(one) for one in found.irregular]
