"""`ordinate study`: experiments on metrics themselves, run again."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ordinate.cli.options import add_command, add_output_options, write_report
from ordinate.errors import BadOption, shorten

if TYPE_CHECKING:
    from ordinate.meta.replication.option_search import ReadingSearch
    from ordinate.meta.replication.study import ReplicationStudy
    from ordinate.meta.replication.synthetic_experiment import Reading

READING_OPTIONS = """options of a reading, and their choices, the literal one first:
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
  ordinate study synthetic --first-seed 10 --seeds 2 --format json
  ordinate study synthetic --search-readings -o search.txt

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "study",
        "Run an experiment on metrics again, and show it beside the published figures.",
        f"{READING_OPTIONS}\n{EXAMPLES}",
    )
    add = parser.add_argument
    add("study", choices=("synthetic",), help="which: coverage of metrics over synthetic systems")
    add("--first-seed", type=int, metavar="N", help="the first seed (default: 0; of a search: 100)")
    add("--seeds", type=int, metavar="N", help="how many seeds (default: 5; of a search: 3)")
    add(
        "--search-readings",
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
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the study, and write the report."""
    write_report(options, lambda: _run_study(options))
    return 0


def _run_study(options: argparse.Namespace) -> "ReplicationStudy | ReadingSearch":
    from ordinate.cli.progress import show_share
    from ordinate.meta.replication.option_search import search_readings
    from ordinate.meta.replication.study import READINGS, SEEDS, run_replication
    from ordinate.meta.replication.synthetic_experiment import SEARCH_SEEDS

    usual = SEARCH_SEEDS if options.search_readings else SEEDS
    seeds = _parse_seeds(options, usual[0], len(usual))
    if options.search_readings and options.option:
        raise BadOption("--search-readings tries every choice; it does not go with --option.")
    readings = {"chosen": _parse_reading(options.option)} if options.option else READINGS
    with show_share("searching" if options.search_readings else "running") as progress:
        return (
            search_readings(seeds, progress=progress)
            if options.search_readings
            else run_replication(seeds, readings, progress=progress)
        )


def _parse_reading(texts: Iterable[str]) -> "Reading":
    """Return the literal reading with the options of NAME=VALUE set."""
    from ordinate.meta.replication.synthetic_experiment import LITERAL

    reading, given = LITERAL, set()
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise BadOption(
                f"--option takes NAME=VALUE, such as errors=independent, not {shorten(text)}."
            )
        if name in given:
            raise BadOption(f"--option {name}=… is given twice; a reading has one choice.")
        reading = reading.with_option(name, value)
        given.add(name)
    return reading


def _parse_seeds(options: argparse.Namespace, first: int, count: int) -> range:
    first = first if options.first_seed is None else options.first_seed
    count = count if options.seeds is None else options.seeds
    if first < 0:
        raise BadOption(f"--first-seed takes an integer of at least 0, not {first}.")
    if count < 1:
        raise BadOption(f"--seeds takes a number of at least 1, not {count}.")
    return range(first, first + count)
