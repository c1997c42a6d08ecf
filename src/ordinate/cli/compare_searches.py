"""`ordinate compare-searches`: the winners of several searches on the same test rows."""

import argparse
from typing import Any

from ordinate.cli.flags import StorePath
from ordinate.cli.options import HelpFormatter, add_output_options, write_report
from ordinate.errors import BadInput

EXAMPLES = """examples:
  ordinate compare-searches two gp
  ordinate compare-searches found

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare-searches",
        help="compare the winners of several regression searches, or the finalists of one",
        description="Compare regression models on the same test rows: differences of RMSE, MAE and "
        "R² with intervals.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "folders", metavar="DIR", nargs="+", type=StorePath, help="folders of searches"
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, and write the report."""
    from ordinate.regress.search_comparison import compare_searches

    if len(set(options.folders)) < len(options.folders):
        raise BadInput("The same folder is named twice.")
    write_report(options, lambda: compare_searches(options.folders))
    return 0
