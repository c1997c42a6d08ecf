"""The command `ordinate`: parsing, exit codes, and one message for each error."""

import argparse
import io
import os
import re
import sys
from collections.abc import Collection
from importlib import import_module
from typing import Any, NoReturn

from ordinate import __version__
from ordinate.cli import completion, options
from ordinate.errors import OffScale, OrdinateError, hide_password, replace_control_characters

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # as shells number them
# Each in a module of its name, which is imported when the command is asked for.
COMMANDS = {
    "evaluate": "evaluate predicted levels, or their probabilities, against gold levels",
    "evaluate-regression": "evaluate predicted against target values, in their unit",
    "compare": "compare systems on the same items",
    "count": "count items into a shard, for merge",
    "merge": "merge shards that were counted apart, and report",
    "verify": "make a report again, and say whether all digits agree",
    "power": "plan how many items a comparison takes",
    "decode": "turn probabilities into the levels that a metric rewards",
    "init": "lay out an experiment folder from labelled texts",
    "check": "say what is missing or odd in an experiment folder",
    "features": "make feature sets of the texts of an experiment",
    "tune": "find the best model for a metric, from labelled data and feature sets",
    "predict": "predict levels with a saved model",
    "rank": "evaluate and rank saved models and external predictions",
    "tune-regression": "find the best regression model for a table of numbers",
    "predict-regression": "predict new rows with a saved regression model",
    "compare-searches": "compare the winners of several regression searches",
    "analyze-search": "show what a search found, and which hyperparameters mattered",
    "site": "write a static site over a folder of reports",
    "card": "write the model card of a tuned model",
    "metrics": "list the metrics, or explain one",
    "advise": "say which metrics to report, and why",
    "properties": "say which formal properties metrics have",
    "meta": "meta-evaluation: which metrics deserve trust on your systems",
    "study": "run an experiment on metrics again",
}

# Commands that compute on threads of their own, of which each would wait for those of NumPy's BLAS.
THREADED = {"evaluate", "evaluate-regression", "compare", "merge", "power", "verify", "meta"}
# How like another flag a slip is: --trails is one for --trials, --lenient none for --unit.
SLIP_SIMILARITY = 0.75


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line; what begins with a minus and a digit is no flag."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # as in --scale -1..1

    def parse_known_args(self, *arguments: Any, **more: Any) -> Any:
        """Refuse what a command does not know, and name what comes near."""
        found, unknown = super().parse_known_args(*arguments, **more)
        if unknown:
            from difflib import get_close_matches

            said = " ".join(replace_control_characters(hide_password(x)) for x in unknown)
            flags = [x.partition("=")[0] for x in unknown if x.startswith("--")]
            known = self._option_string_actions
            near = [y for x in flags for y in get_close_matches(x, known, 1, SLIP_SIMILARITY)]
            advice = f". Did you mean {' and '.join(near)}?" if near else ""
            self.error(f"unrecognized arguments: {said}{advice}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser(whole: Collection[str] = tuple(COMMANDS)) -> CommandParser:
    """Return the parser of all commands; those that are not asked for `whole` have no flags."""
    top = CommandParser(
        prog="ordinate",
        description="Evaluate, compare and tune models whose outcomes are ordered.",
        epilog="ordinate COMMAND --help explains a command, with examples.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"ordinate {__version__}")
    completion.add_flag(top, build_parser)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name in whole:
            import_module(f"ordinate.cli.{name.replace('-', '_')}").add_to(commands)
        else:
            commands.add_parser(name, help=summary)
    return top


def _run(parsed: argparse.Namespace) -> int:
    """Run a command, or propose a map for labels that are not on the scale, where that is asked."""
    try:
        code: int = parsed.run(parsed)
    except OffScale as problem:
        if getattr(parsed, "propose_map", None) is None or not problem.proposed_map:
            raise
        return options.write_proposed_map(parsed, problem)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115,PTH123 - closed by the caller
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a character
    words = sys.argv[1:] if arguments is None else arguments
    if THREADED & {*words[:1]} and "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # is read when NumPy is imported
    parsed = argparse.Namespace()
    try:
        parsed = build_parser(words[:1]).parse_args(words)
        options.load_metric_files(getattr(parsed, "load", ()))
        code = _run(parsed)
        sys.stdout.flush()
    except OrdinateError as problem:
        print(f"ordinate: {replace_control_characters(str(problem))}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        more = " The same command goes on." if getattr(parsed, "resumes", False) else ""
        print(f"Interrupted.{more}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough, as in `ordinate … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code
