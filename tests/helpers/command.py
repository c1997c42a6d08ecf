"""The command line, run in the process of the tests."""

import contextlib
import io
import json
from typing import Any, NamedTuple

from frozen import FOLDER, keep, read_outputs

from ordinate.cli.main import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments) -> Ran:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = [str(argument) for argument in arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code
    ran = Ran(code, out.getvalue(), err.getvalue())
    if FOLDER is not None:
        keep(f"{' '.join(words)}: {code}", ran.out, ran.err, *read_outputs(words))
    return ran


def read_values(text: str) -> dict[str, Any]:
    """Return the values of a report as JSON, without what the report was made of."""
    found = json.loads(text, parse_constant=_refuse_constant)
    found.pop("provenance", None)
    return found


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
