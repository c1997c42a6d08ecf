"""The command `ordinate`: parsing, exit codes, and one message for each error."""

import argparse
import io
import os
import sys
from typing import NoReturn

from ordinate import __version__
from ordinate.cli import (
    check,
    compare,
    decode,
    evaluate,
    features,
    init,
    meta,
    metrics,
    options,
    power,
    predict,
    properties,
    rank,
    study,
    surrogate,
    tune,
)
from ordinate.errors import OrdinateError, replace_control_characters

BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 2, 130, 141  # as shells number them
COMMANDS = (
    *(evaluate, compare, power, decode),
    *(init, check, features, tune, predict, rank),
    surrogate,
    *(metrics, properties, meta, study),
)


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> CommandParser:
    """Return the parser of all commands."""
    top = CommandParser(
        prog="ordinate",
        description="Evaluate, compare and tune models whose outcomes are ordered.",
        epilog="ordinate COMMAND --help explains a command, with examples.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"ordinate {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return top


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115,PTH123 - closed by the caller
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a character
    parsed = build_parser().parse_args(arguments)
    try:
        options.load_metric_files(getattr(parsed, "load", ()))
        code: int = parsed.run(parsed)
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
