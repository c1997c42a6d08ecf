"""Print where an example lies: python -m ordinate.examples cefr."""

import argparse
import sys

from ordinate.examples import EXAMPLE_FILES, locate_example

parser = argparse.ArgumentParser(prog="python -m ordinate.examples", description=__doc__)
first = next(iter(EXAMPLE_FILES))
parser.add_argument(
    "name",
    nargs="?",
    choices=EXAMPLE_FILES,
    default=first,
    help=f"which example (default: {first})",
)
sys.stdout.write(f"{locate_example(parser.parse_args().name)}\n")
