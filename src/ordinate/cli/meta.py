"""`ordinate meta`: systems that predict the same items in, which metric deserves trust out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.file_options import open_source
from ordinate.cli.flags import add_flags, collect_given
from ordinate.cli.options import (
    add_command,
    add_metric_file_option,
    add_metrics_option,
    add_output_options,
    add_system_options,
    collect_columns,
    write_report,
)

if TYPE_CHECKING:
    from ordinate.meta.meta_evaluation import MetaEvaluation

DESCRIPTION = """\
Meta-evaluation of metrics on systems that predict the same items: which metric
captures all quality aspects that reference metrics stand for (coverage), ranks
systems alike in every test case (robustness, stability) and separates them
(discriminative power). The systems are columns of one file; or the first file
has the gold levels, and each further file is the run of a system. The clusters
(--groups) are the test cases. One or two systems get the values of all metrics
in each test case; what compares metrics takes pairs of three or more.
"""

EXAMPLES = """examples:
  ordinate meta results.csv --gold level --systems a,b,c --groups topic
  ordinate meta gold.tsv runs/*.tsv --id topic,id --groups topic --gold level --predicted level
  ordinate meta gold.tsv runs/*.tsv --header none --columns topic,id,level --id topic,id \\
    --groups topic --gold level --predicted level --missing drop --bad-lines skip
  ordinate meta gold.tsv runs/ --id id --gold level --predicted level --cases 5
  ordinate meta results.csv --gold level --systems a,b,c --cases 20 --references accuracy,mae
  ordinate meta results.csv --gold level --systems a --groups topic --format json
  ordinate meta results.csv --gold level --systems a,b,c --metrics all --format json -o meta.json
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.meta.meta_evaluation import MetaEvaluationSettings, evaluate_metrics

    parser = add_command(commands, "meta", DESCRIPTION, EXAMPLES)
    add_system_options(parser)
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
    from ordinate.meta.meta_evaluation import MetaEvaluationSettings, evaluate_metrics

    given = collect_columns(options) | collect_given(options, evaluate_metrics)
    if options.references is not None:
        given["references"] = options.references
    with (
        open_source(options, ("predicted",)) as source,
        show_share("evaluating metrics") as progress,
    ):
        return evaluate_metrics(
            source,
            options.metrics,
            scale=options.scale,
            missing=options.missing,
            **given,
            **collect_given(options, MetaEvaluationSettings),
            progress=progress,
        )
