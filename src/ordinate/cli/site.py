"""`ordinate site`: a folder of reports in, a static site over them out."""

import argparse
import sys
from typing import Any

from ordinate.cli.flags import InputPath
from ordinate.cli.options import add_command, add_force_option, add_format_option

EXAMPLES = """examples:
  ordinate evaluate results.csv --gold level --predicted model_a -o reports/model_a.json
  ordinate site reports -o public
  ordinate site reports -o public --force

pages: index.html lists the reports, leaderboard.html has what systems reached over time,
compare.html any two reports side by side, items.html what tuned systems got most wrong

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "site",
        "Write a static site over a folder of evaluations, comparisons and experiments: an index, "
        "leaderboards over time, two reports side by side, and the items that systems got most "
        "wrong. Reports are the pages and the JSON of any command (-o report.html or .json), and "
        "the folders of tuning. A report that cannot be read is listed with its reason. --force "
        "replaces a site that Ordinate wrote, and nothing else.",
        EXAMPLES,
    )
    parser.add_argument(
        "folder", metavar="DIR", type=InputPath, help="folder of reports and experiments"
    )
    parser.add_argument(
        *("-o", "--output"), metavar="OUT", required=True, help="folder of the site, a new one"
    )
    add_format_option(parser)
    add_force_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the site, and say what it has."""
    from ordinate.cli.progress import show_stages
    from ordinate.render import find_terminal_width, render
    from ordinate.site import write_site

    with show_stages() as show_stage:
        listing = write_site(
            options.folder,
            options.output,
            force=options.force,
            progress=lambda path: show_stage("reports", 0.0, path),
        )
    sys.stdout.write(render(listing, options.format or "text", width=find_terminal_width()))
    return 0
