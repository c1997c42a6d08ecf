"""`ordinate compare`: predictions of many systems for the same items in, leaderboards out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import open_source
from ordinate.cli.flags import add_flags, collect_given, parse_names
from ordinate.cli.options import (
    CaseColumns,
    IntervalOptions,
    add_command,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    add_system_options,
    collect_columns,
    parse_intervals,
    parse_metric_value,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.results.comparison import Comparison
    from ordinate.results.regression_comparison import RegressionComparison

EXAMPLES = """examples:
  ordinate compare results.csv --gold level --systems model_a,model_b,model_c
  ordinate compare gold.csv runs/*.csv --id essay --gold cefr --predicted answer
  ordinate compare results.parquet --gold stars --systems a,b --scale 1..5 --groups writer
  ordinate compare gold.tsv runs/*.tsv --id topic,id --gold level --predicted level --missing drop
  ordinate compare results.csv --systems a,b,c --average-over topic
  ordinate compare densities.csv --target density --systems linear,forest --unit kg/m³
  ordinate compare --sql duckdb:///runs.db --query 'select * from essays' --gold level --systems a,b
  ordinate compare results.csv --systems a,b,c --against a --margin cem_ord=0.02 --correction holm
  ordinate compare results.csv --systems a,b,c --pairs a:b,a:c --format json -o comparison.json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.readers.columns import ItemColumns

    parser = add_command(
        commands,
        "compare",
        "Compare systems that predicted levels, or a target, for the same items: a leaderboard for "
        "each metric with confidence and rank intervals, differences with p-values for all pairs "
        "at once, and tests for named pairs. The systems are columns of one file; or the first "
        "file has the gold levels, and each further file is the run of a system.",
        EXAMPLES,
    )
    group = add_system_options(parser)
    add_flags(group, CaseColumns, ("average_over",))
    add_flags(group, ItemColumns, ("target",))
    group.add_argument("--unit", metavar="UNIT", help="of the targets, such as kg/m³")
    group = parser.add_argument_group("metrics and tests")
    add_metrics_option(group)
    group.add_argument(
        "--against",
        metavar="all|leader|NAME",
        help="compare all pairs, each system with the leader, or each with a named one "
        "(default: all, and leader above 50 systems)",
    )
    group.add_argument(
        "--correction",
        choices=("max_t", "holm", "bh", "by", "none"),
        default="max_t",
        help="adjustment of p-values for multiple comparisons (default: max_t)",
    )
    add_flags(group, IntervalOptions)
    group.add_argument(
        "--margin",
        metavar="METRIC=VALUE",
        action="append",
        default=[],
        help="equivalence margin: a difference that does not matter; may be repeated",
    )
    group.add_argument(
        "--pairs",
        metavar="A:B",
        action="append",
        default=[],
        help="pairs of systems for permutation, McNemar and other paired tests; may be repeated",
    )
    add_metric_file_option(group)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, and write the report."""
    write_report(options, lambda: _compare(options))
    return 0


def _compare(options: argparse.Namespace) -> "Comparison | RegressionComparison":
    from ordinate.cli.progress import show_share
    from ordinate.metrics import get_summary_type
    from ordinate.results.comparison import compare

    summary = get_summary_type("regression" if hasattr(options, "target") else "labels")
    margins = [parse_metric_value("--margin", text, summary) for text in options.margin]
    arguments = collect_columns(options) | collect_given(options, CaseColumns)
    pairs = _parse_pairs(options.pairs)
    with open_source(options, ("predicted",)) as source, show_share("comparing") as progress:
        return compare(
            source,
            scale=options.scale,
            metrics=options.metrics,
            unit=options.unit,
            missing=options.missing,
            interval=parse_intervals(options),
            against=options.against,
            correction=options.correction,
            margins={metric.expression: margin for metric, margin in margins},
            pairs=pairs,
            progress=progress,
            **arguments,
        )


def _parse_pairs(texts: list[str]) -> list[str]:
    pairs = [pair for text in texts for pair in parse_names("--pairs", text)]
    for pair in pairs:
        if not all(pair.partition(":")):
            raise BadOption(f"--pairs takes two systems, such as a:b, not {pair!r}.")
    return pairs
