"""`ordinate verify`: a report in, whether all its digits agree with the report made again out."""

import argparse
from typing import Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import (
    add_command,
    add_metric_file_option,
    add_output_options,
    write_report,
)

DIFFERENT = 3  # the exit code, as where a threshold is not reached
EXAMPLES = """examples:
  ordinate verify report.html
  ordinate verify report.json --format json

exit codes: 0 all digits agree, 1 internal error, 2 bad input, 3 something differs, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "verify",
        "Make a report again from what it carries, and say whether all digits agree, which differ, "
        "and with which version it was made. Reports are the pages and the JSON of any command.",
        EXAMPLES,
        exit_codes="",  # its own stand below the examples
    )
    parser.add_argument("report", metavar="REPORT", type=InputPath, help="a page, or JSON")
    add_metric_file_option(parser)
    add_output_options(parser.add_argument_group("output"))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Verify, and write the report."""
    from ordinate.results.verification import verify

    found = write_report(options, lambda: verify(options.report))
    return 0 if found.agrees else DIFFERENT
