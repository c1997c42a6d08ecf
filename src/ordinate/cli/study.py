"""`ordinate study`: experiments on metrics themselves, run again."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import Help, add_output, reported
from ordinate.errors import BadOption, brief

if TYPE_CHECKING:
    from ordinate.meta.replication.reading_search import Search
    from ordinate.meta.replication.study import Study
    from ordinate.meta.replication.synthetic_systems import Reading

READ_AS = """options of a reading, and their choices, the literal one first:
  deviation    grid, drawn
  outside      nearest, redrawn
  errors       exact, independent
  majority     fourth, most_frequent
  random       rounded, discrete, other
  tag_end      clamp, wrap
  ordinal_end  clamp, wrap, stay
  proximity    position, level_down, level_up
  kendall      tau_a, tau_b, gamma
  f_levels     either, gold, all
  undefined    zero, left_out
  values       mean, pooled
  unanimity    weak, strict
  pairs        ordered, unordered
"""
EXAMPLES = """examples:
  ordinate study synthetic
  ordinate study synthetic --option errors=independent --option values=pooled
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
        epilog=f"{READ_AS}\n{EXAMPLES}",
        formatter_class=Help,
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
    add(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="run a reading of your own, in place of the literal and the fitted one: the literal "
        "one with this option set, such as errors=independent; may be repeated",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the study, and write the report."""
    reported(options, lambda: _studied(options))
    return 0


def _studied(options: argparse.Namespace) -> "Study | Search":
    from ordinate.cli.progress import ticking
    from ordinate.meta.replication.reading_search import search
    from ordinate.meta.replication.study import READINGS, SEEDS, study
    from ordinate.meta.replication.synthetic_systems import SEARCHED

    usual = SEARCHED if options.search else SEEDS
    seeds = _seeds(options, usual[0], len(usual))
    if options.search and options.option:
        raise BadOption("--search tries every choice; it does not go with --option.")
    readings = {"chosen": _reading(options.option)} if options.option else READINGS
    with ticking("searching" if options.search else "running") as tick:
        return search(seeds, tick=tick) if options.search else study(seeds, readings, tick=tick)


def _reading(texts: Iterable[str]) -> "Reading":
    """Return the literal reading with the options of NAME=VALUE set."""
    from ordinate.meta.replication.synthetic_systems import LITERAL

    reading, given = LITERAL, set()
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise BadOption(
                f"--option takes NAME=VALUE, such as errors=independent, not {brief(text)}."
            )
        if name in given:
            raise BadOption(f"--option {name}=… is given twice; a reading has one choice.")
        reading = reading.with_option(name, value)
        given.add(name)
    return reading


def _seeds(options: argparse.Namespace, first: int, count: int) -> range:
    first = first if options.seed is None else options.seed
    count = count if options.seeds is None else options.seeds
    if first < 0:
        raise BadOption(f"--seed takes a whole number of at least 0, not {first}.")
    if count < 1:
        raise BadOption(f"--seeds takes a number of at least 1, not {count}.")
    return range(first, first + count)
