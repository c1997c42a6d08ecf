"""`ordinate compare-searches`: the winners of several searches on the same test rows."""

import argparse
from typing import Any

from ordinate.cli.flags import StorePath
from ordinate.cli.options import add_command, add_output_options, write_report
from ordinate.errors import BadInput

EXAMPLES = """examples:
  ordinate compare-searches two gp
  ordinate compare-searches found
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "compare-searches",
        "Compare the winners of several regression searches on the same test rows, or the "
        "finalists of one: differences of RMSE, MAE and R² with intervals.",
        EXAMPLES,
    )
    parser.add_argument(
        "folders", metavar="DIR", nargs="+", type=StorePath, help="folders of searches"
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, and write the report."""
    from ordinate.tuning.regress.search_comparison import compare_searches

    if len(set(options.folders)) < len(options.folders):
        raise BadInput("The same folder is named twice.")
    write_report(options, lambda: compare_searches(options.folders))
    return 0
