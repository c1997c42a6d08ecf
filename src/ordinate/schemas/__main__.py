"""Print where the JSON schema of a report lies: python -m ordinate.schemas Evaluation."""

import argparse
import sys

from ordinate.schemas import list_schemas, locate_schema

parser = argparse.ArgumentParser(prog="python -m ordinate.schemas", description=__doc__)
parser.add_argument("name", choices=list_schemas(), help="which report, by its class in Python")
sys.stdout.write(f"{locate_schema(parser.parse_args().name)}\n")
