"""`ordinate compare`: predictions of many systems for the same items in, leaderboards out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import open_rows
from ordinate.cli.flags import add_flags, collect_given, parse_names
from ordinate.cli.options import (
    CaseColumns,
    IntervalOptions,
    LabelOptions,
    add_command,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    add_system_options,
    find_clusters,
    parse_comparison_settings,
    parse_metric_value,
    read_systems,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.metrics import Metric
    from ordinate.results.comparison import Comparison
    from ordinate.results.comparison_settings import ComparisonSettings
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
    compare = _compare_models if hasattr(options, "target") else _compare_systems
    write_report(options, lambda: compare(options))
    return 0


def _compare_models(options: argparse.Namespace) -> "Comparison | RegressionComparison":
    """Compare regression models, whose predictions are columns of files."""
    import numpy as np

    from ordinate.cli.progress import watch_files
    from ordinate.readers.columns import ItemColumns
    from ordinate.readers.item_columns import read_columns
    from ordinate.results import Origin
    from ordinate.results.arguments import check_system_count
    from ordinate.results.comparison import compare
    from ordinate.summaries.regression import Moments

    columns = ItemColumns(**collect_given(options, ItemColumns))
    if columns.predicted or columns.id:
        raise BadOption("Regression models are columns of one file: name them with --systems.")
    check_system_count(len(columns.systems))
    margins = [parse_metric_value("--margin", text, Moments) for text in options.margin]
    settings = _parse_settings(options, margins)
    arguments: dict[str, Any] = {
        **collect_given(options, LabelOptions),
        "average_over": getattr(options, "average_over", None),
        "gold": columns.gold,
        "scale": options.scale,
        "pairs": [tuple(pair.split(":")) for pair in _parse_pairs(options.pairs)],
        "unit": options.unit,
        "missing": options.missing or "error",
        "metrics": options.metrics,
        "interval": settings.intervals,
        "against": settings.against,
        "correction": settings.correction,
        "margins": settings.margins,
    }
    names = dict.fromkeys((columns.target, columns.weights, *columns.systems))
    with open_rows(options) as table:
        if table is not None:
            named: dict[str, Any] = {"target": columns.target, "weights": columns.weights}
            named["groups"] = columns.groups
            return compare(table.rows, columns.systems, **named, **arguments)
        found = read_columns(
            options.files,
            [name for name in names if name],
            columns,
            labels=[columns.groups] if columns.groups else [],
            watch=watch_files,
        )
    cells = {
        name: cell if isinstance(cell, list) else np.ma.masked_invalid(cell)
        for name, cell in found.columns.items()
    }
    result = compare(
        None,
        {name: cells[name] for name in columns.systems},
        target=cells[str(columns.target)],
        weights=None if columns.weights is None else cells[columns.weights],
        groups=None if columns.groups is None else found.labels[columns.groups],
        **arguments,
    )
    return result.replace_fields(origin=Origin(str(columns.target), files=found.files))


def _compare_systems(options: argparse.Namespace) -> "Comparison":
    from dataclasses import replace

    from ordinate.cli.progress import show_share
    from ordinate.results import Origin, select_metrics
    from ordinate.results.arguments import check_system_count
    from ordinate.results.case_averages import Cases
    from ordinate.results.comparison import Comparison

    if options.unit:
        raise BadOption("--unit is that of a target: name its column with --target.")
    margins = [parse_metric_value("--margin", text) for text in options.margin]
    metrics, settings = select_metrics(options.metrics), _parse_settings(options, margins)
    requested = _parse_pairs(options.pairs)
    found = read_systems(options, check_system_count, groups=find_clusters(options))
    cases = None
    if hasattr(options, "average_over"):
        cases = Cases(found.panel.group_values, options.average_over)
    pairs = [_split_pair(text, found.panel.systems) for text in requested]
    origin = Origin(
        gold=found.gold, files=found.files, match_counts=found.match_counts, notes=found.notes
    )
    with show_share("comparing") as progress:
        return Comparison.from_panel(
            found.panel,
            metrics,
            replace(settings, pairs=pairs),
            cases=cases,
            origin=origin,
            progress=progress,
        )


def _parse_settings(
    options: argparse.Namespace, margins: "list[tuple[Metric, float]]"
) -> "ComparisonSettings":
    return parse_comparison_settings(
        options,
        against=options.against,
        correction=options.correction,
        margins={metric.expression: margin for metric, margin in margins},
    )


def _parse_pairs(texts: list[str]) -> list[str]:
    pairs = [pair for text in texts for pair in parse_names("--pairs", text)]
    for pair in pairs:
        if not all(pair.partition(":")):
            raise BadOption(f"--pairs takes two systems, such as a:b, not {pair!r}.")
    return pairs


def _split_pair(text: str, systems: tuple[str, ...]) -> tuple[str, str]:
    """Return the two systems of a pair; their names may have colons too."""
    parts = text.split(":")
    splits = [(":".join(parts[:k]), ":".join(parts[k:])) for k in range(1, len(parts))]
    known = [split for split in splits if set(split) <= set(systems)]
    return known[0] if known else splits[0]
