"""Print where an example lies: python -m ordinate.examples cefr."""

import sys

from ordinate.examples import NAMES, path

sys.stdout.write(f"{path(sys.argv[1] if len(sys.argv) > 1 else next(iter(NAMES)))}\n")
