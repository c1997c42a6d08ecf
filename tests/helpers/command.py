"""The command line, run in the process of the tests."""

import contextlib
import io
import json
from typing import Any, NamedTuple

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


def read_values(text: str) -> dict[str, Any]:
    """Return the values of a report as JSON, without what the report was made of."""
    found = json.loads(text, parse_constant=_refuse_constant)
    found.pop("provenance", None)
    return found


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
