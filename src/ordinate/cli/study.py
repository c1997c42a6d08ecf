"""`ordinate study`: experiments on metrics themselves, run again."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import add_output, reported
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.meta.fit import Search
    from ordinate.meta.study import Study

EXAMPLES = """examples:
  ordinate study synthetic
  ordinate study synthetic --seed 10 --seeds 2 --format json
  ordinate study synthetic --search -o search.txt

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "study",
        help="run an experiment on metrics again",
        description="Run an experiment on metrics again, and show it beside the published figures.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("study", choices=("synthetic",), help="which: coverage of metrics over synthetic systems")
    add("--seed", type=int, metavar="N", help="the first seed (default: 0; of a search: 100)")
    add("--seeds", type=int, metavar="N", help="how many seeds (default: 5; of a search: 3)")
    add(
        "--search",
        action="store_true",
        help="look for the reading of the text that fits the published figures best (minutes)",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the study, and write the report."""
    reported(options, [], lambda: _studied(options))
    return 0


def _studied(options: argparse.Namespace) -> "Study | Search":
    from ordinate.cli.progress import ticking
    from ordinate.meta.fit import search
    from ordinate.meta.study import SEEDS, study
    from ordinate.meta.synthetic import SEARCHED

    usual = SEARCHED if options.search else SEEDS
    seeds = _seeds(options, usual[0], len(usual))
    with ticking("searching" if options.search else "running") as tick:
        return search(seeds, tick=tick) if options.search else study(seeds, tick=tick)


def _seeds(options: argparse.Namespace, first: int, count: int) -> range:
    first = first if options.seed is None else options.seed
    count = count if options.seeds is None else options.seeds
    if first < 0:
        raise BadOption(f"--seed takes a whole number of at least 0, not {first}.")
    if count < 1:
        raise BadOption(f"--seeds takes a number of at least 1, not {count}.")
    return range(first, first + count)
