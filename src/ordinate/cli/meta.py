"""`ordinate meta`: systems of an evaluation campaign in, which metric deserves trust out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import add_column_options
from ordinate.cli.flags import add_flags, collect_given
from ordinate.cli.options import (
    add_command,
    add_file_option,
    add_label_options,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    parse_scale,
    read_renamed_labels,
    read_systems,
    write_report,
)
from ordinate.errors import BadOption
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.meta.meta_evaluation import MetaEvaluation
    from ordinate.results import Origin
    from ordinate.summaries import Panel

DESCRIPTION = """\
Meta-evaluation of metrics on systems that predict the same items: which metric
captures all quality aspects that reference metrics stand for (coverage), ranks
systems alike in every test case (robustness, stability) and separates them
(discriminative power). Each file, or file of a folder, is the run of a system,
and --gold-file has the gold levels; or, with --systems, the systems are columns
of one file and --gold is one, too. One or two systems get the values of all
metrics in each test case; what compares metrics takes pairs of three or more.
"""

EXAMPLES = """examples:
  ordinate meta runs/*.tsv --gold-file gold.tsv
  ordinate meta runs --gold-file gold.tsv --test-case entity --id tweet --value polarity --lenient
  ordinate meta results.csv --gold level --systems a,b,c --test-case topic
  ordinate meta results.csv --gold level --systems a,b,c --cases 20 --references accuracy,mae
  ordinate meta results.csv --gold level --systems a --test-case topic --format json
  ordinate meta results.csv --gold level --systems a,b,c --metrics all --format json -o meta.json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.meta.campaign_lines import CampaignColumns
    from ordinate.meta.meta_evaluation import MetaEvaluationSettings, evaluate_metrics
    from ordinate.readers.columns import ItemColumns

    parser = add_command(commands, "meta", DESCRIPTION, EXAMPLES)
    group = parser.add_argument_group("input")
    add_file_option(group)
    add_flags(group, ItemColumns, ("gold_file", "systems"))
    apart = add_column_options(parser, group, CampaignColumns, without=("predicted", "hive"))
    add_label_options(group, apart, "edges")
    group = parser.add_argument_group("metrics")
    add_metrics_option(group)
    group.add_argument(
        "--references",
        metavar="LIST",
        help="metrics that together stand for quality "
        "(default: accuracy,kendall_tau_a,mutual_information)",
    )
    add_flags(group, evaluate_metrics)
    add_flags(group, MetaEvaluationSettings)
    add_metric_file_option(group)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Evaluate metrics, and write the report."""
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
    settings = collect_given(options, MetaEvaluationSettings)
    MetaEvaluationSettings(**settings)  # refuses what makes no sense before anything is read
    panel, origin, irregular = (
        _read_wide_file if hasattr(options, "systems") else _read_campaign_files
    )(options)
    with show_share("evaluating metrics") as progress:
        return evaluate_metrics(
            panel,
            metrics,
            references,
            **collect_given(options, evaluate_metrics),
            **settings,
            origin=origin,
            irregular=irregular,
            progress=progress,
        )


LoadedPanel = tuple["Panel", "Origin", list[dict[str, Any]]]


def _read_wide_file(options: argparse.Namespace) -> LoadedPanel:
    """Read the systems that are columns of one file."""
    from ordinate.results import Origin

    for option in ("id", "value", "gold_file"):
        if hasattr(options, option):
            raise BadOption(
                f"{format_flag(option)} is for runs in their own files, not for --systems."
            )
    groups = getattr(options, "test_case", None)
    found = read_systems(options, lambda systems: _check_systems(options, systems), groups=groups)
    origin = Origin(gold=found.gold, files=found.files, notes=found.notes)
    return found.panel, origin, []


def _check_systems(options: argparse.Namespace, systems: int) -> None:
    """Refuse a number of systems before they are read; named test cases are two at least."""
    from ordinate.meta.meta_evaluation import check_pair_count

    check_pair_count(systems, 2 if hasattr(options, "test_case") else getattr(options, "cases", 10))


def _read_campaign_files(options: argparse.Namespace) -> LoadedPanel:
    """Read a file of gold levels and one for each run."""
    from dataclasses import asdict

    from ordinate.cli.progress import watch_files
    from ordinate.meta.campaign import read_campaign
    from ordinate.meta.campaign_lines import CampaignColumns
    from ordinate.results import Origin

    if not hasattr(options, "gold_file"):
        raise BadOption(
            "Name the file of gold levels with --gold-file, or the columns of one file with "
            "--systems."
        )
    columns = CampaignColumns(
        **collect_given(options, CampaignColumns), renamed=read_renamed_labels(options)
    )
    found = read_campaign(
        options.gold_file,
        options.files,
        columns,
        parse_scale(options),
        options.missing,
        watch=watch_files,
    )
    origin = Origin(
        options.gold_file, files=found.files, match_counts=found.match_counts, notes=found.notes
    )
    return found.panel, origin, [asdict(one) for one in found.irregular]
