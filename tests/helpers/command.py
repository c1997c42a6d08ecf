"""The command line, run in the process of the tests."""

import contextlib
import io
from typing import NamedTuple

from ordinate.cli.main import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments) -> Ran:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
    return Ran(code, out.getvalue(), err.getvalue())
