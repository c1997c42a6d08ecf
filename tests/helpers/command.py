"""The command line, run in the process of the tests."""

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
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


def list_examples(command: str, flag: str = "--help") -> list[str]:
    """Return the example lines of the help of a command."""
    text = run(command, flag).out.partition("examples:\n")[2]
    text = re.sub(r"\\\n\s*", "", text)  # an example of two lines
    return [line.strip() for line in text.partition("\n\n")[0].splitlines()]


def check_example(line: str) -> None:
    """Run an example in the current folder: by a shell where only a shell can read it."""
    if set("|*<>$") & set(line):
        script = f'ordinate() {{ "$PYTHON" -m ordinate "$@"; }}\n{line}'
        settings = os.environ | {"PYTHON": sys.executable}
        words = ["/bin/bash", "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, env=settings, check=False)
        ran = Ran(done.returncode, done.stdout, done.stderr)
    else:
        ran = run(*shlex.split(line)[1:])
    assert (ran.code, ran.err) == (0, "")
    outputs = re.findall(r"(?:-o|--items) (\S+)", line)
    assert all(Path(name).stat().st_size for name in outputs)
    assert ran.out or outputs


def read_values(text: str) -> dict[str, Any]:
    """Return the values of a report as JSON, without what the report was made of."""
    found = json.loads(text, parse_constant=_refuse_constant)
    found.pop("provenance", None)
    return found


def _refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")
