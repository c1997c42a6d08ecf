"""Print where an example lies: python -m ordinate.examples cefr."""

import argparse
import sys

from ordinate.examples import NAMES, path

parser = argparse.ArgumentParser(prog="python -m ordinate.examples", description=__doc__)
first = next(iter(NAMES))
parser.add_argument(
    "name", nargs="?", choices=NAMES, default=first, help=f"which example (default: {first})"
)
sys.stdout.write(f"{path(parser.parse_args().name)}\n")
