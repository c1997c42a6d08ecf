"""The command `ordinate`: parsing, exit codes, and one message for each error."""

import argparse
import errno
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn, TextIO

from ordinate import __version__
from ordinate.cli import completion, options
from ordinate.cli.flags import name_flag
from ordinate.errors import (
    NO_ROOM,
    OffScale,
    OrdinateError,
    hide_passwords,
    name_options,
    replace_control_characters,
    shorten,
)

BAD_INPUT, SIGNALLED, BROKEN_PIPE = 2, 128, 141  # as shells number them
# What ends a command in good order; Windows has no SIGHUP.
STOPS = [getattr(signal, x) for x in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, x)]
UNWRITTEN = {*NO_ROOM, errno.EIO, errno.EBADF}
# Each in a module of its name, which is imported when the command is asked for.
COMMANDS = {
    "evaluate": "evaluate predicted levels, or their probabilities, against gold levels",
    "evaluate-regression": "evaluate predicted against target values, in their unit",
    "compare": "compare systems on the same items",
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
    "analyze-search": "show what a search found, and which hyperparameters mattered",
    "metrics": "list the metrics, or explain one",
    "advise": "say which metrics to report, and why",
    "properties": "say which formal properties metrics have",
    "meta": "meta-evaluation: which metrics deserve trust on your systems",
}

# Commands that compute on threads of their own, of which each would wait for those of NumPy's BLAS.
THREADED = {"evaluate", "evaluate-regression", "compare", "power", "verify", "meta"}
# How like another flag a slip is: --trails is one for --trials, --silent none for --unit.
SLIP_SIMILARITY = 0.75


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line; what begins with a minus and a digit is no flag."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # as in --scale -1..1

    def parse_known_args(self, *arguments: Any, **more: Any) -> Any:
        """Refuse what a command does not know, and name what comes near."""
        self.words: list[str] = arguments[0] or sys.argv[1:]
        found, unknown = super().parse_known_args(*arguments, **more)
        if unknown:
            from difflib import get_close_matches

            said = " ".join(map(replace_control_characters, unknown))
            flags = [x.partition("=")[0] for x in unknown if x.startswith("--")]
            known = self._option_string_actions
            near = [y for x in flags for y in get_close_matches(x, known, 1, SLIP_SIMILARITY)]
            advice = f". Did you mean {' and '.join(near)}?" if near else ""
            self.error(f"unrecognized arguments: {said}{advice}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print the message and where to read more."""
        said = hide_passwords(message, self.words)
        self.exit(BAD_INPUT, f"{self.prog}: {said} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help, which argparse itself drops without a word where it cannot be written."""
        (file or sys.stderr).write(message)


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
    _occupy_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may lack a character
    words = sys.argv[1:] if arguments is None else arguments
    if THREADED & {*words[:1]} and "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # is read when NumPy is imported
    parsed, stopped = argparse.Namespace(), list[int]()
    try:
        with _hear_stops(stopped), _write_all(sys.stdout), name_options(name_flag):
            parsed = build_parser(words[:1]).parse_args(words)
            options.load_metric_files(getattr(parsed, "load", ()))
            code = _run(parsed)
    except BaseException as problem:
        if stopped or isinstance(problem, KeyboardInterrupt):  # an engine may make it another error
            more = " The same command goes on." if getattr(parsed, "resumes", False) else ""
            _tell(f"Interrupted.{more}")
            exec("")  # noqa: S102 - Python dies of SIGINT if the last `exec` of a text was interrupted
            return SIGNALLED + (*stopped, signal.SIGINT)[0]
        if isinstance(problem, BrokenPipeError):  # the reader has seen enough, as `head` has
            return BROKEN_PIPE
        if not isinstance(problem, OrdinateError | OSError):
            raise
        said = hide_passwords(_describe_problem(problem), words)
        _tell(f"ordinate: {replace_control_characters(said)}")
        return BAD_INPUT
    return code


def _describe_problem(problem: OrdinateError | OSError) -> str:
    """Return what went wrong; what has no name and cannot be written is standard output."""
    if isinstance(problem, OrdinateError):
        return str(problem)
    reason = problem.strerror or str(problem)
    if problem.filename is None and problem.errno not in UNWRITTEN:
        return f"{reason}."
    name = "Standard output" if problem.filename is None else shorten(str(problem.filename))
    return f"{name} cannot be used: {reason}."


def _tell(text: str) -> None:
    with suppress(OSError), _write_all(sys.stderr):  # if nobody can be told, the exit code says it
        sys.stderr.write(f"{text}\n")


# --- what is around a command --------------------------------------------------------------------


@contextmanager
def _hear_stops(stopped: list[int]) -> Iterator[None]:
    """Let every signal that asks to stop interrupt as Ctrl-C does, so that all is cleaned up.

    What is ignored, as by nohup, stays so. While all is cleaned up, another Ctrl-C alone is heard.
    """

    def stop(number: int, _: object) -> None:
        stopped.append(number)
        for other in before:
            signal.signal(
                other, signal.default_int_handler if other == signal.SIGINT else signal.SIG_IGN
            )
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # no other one may ask for signals
        before = {x: signal.getsignal(x) for x in STOPS if signal.getsignal(x) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def _write_all(stream: TextIO) -> Iterator[None]:
    """Write all of a stream; what cannot be written is not tried again when Python ends."""
    try:
        try:
            yield
        finally:
            stream.flush()
    except OSError:
        with suppress(OSError):  # a stream of a test has no handle
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def _occupy_closed_streams() -> None:
    """Give closed streams a handle, lest a file gets theirs; what a result needs of them fails."""
    flags = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for name, flag in flags.items():
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, flag)
            os.set_inheritable(handle, True)  # noqa: FBT003 - it takes no keyword
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(handle, mode, closefd=False))  # noqa: SIM115 - it stays
