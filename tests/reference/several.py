"""Run command lines in one process: the reports of one result, in all their forms.

The first argument is a JSON list of command lines. The last line of standard output is a JSON list
with the exit code, standard output and standard error of each.
"""

import contextlib
import io
import json
import runpy
import sys
import traceback
from typing import Any

import _duckdb


def run_line(words: list[str]) -> tuple[int, str, str]:
    """Run a command line as `python -m ordinate.cli` does."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["ordinate", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_module("ordinate.cli", run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        except Exception:  # noqa: BLE001 - as the interpreter does with whatever nobody caught
            traceback.print_exc()
            code = 1
    return code, out.getvalue(), err.getvalue()


def hold_threads() -> None:
    """Give the engine one thread: several add sums in the order in which they are done.

    `import duckdb` takes its function from the native module, and so takes this one.
    """
    connect = _duckdb.connect

    def connect_alone(*positional: Any, **named: Any) -> Any:
        connection = connect(*positional, **named)
        connection.execute("SET threads = 1")
        return connection

    _duckdb.connect = connect_alone


if __name__ == "__main__":
    lines = json.loads(sys.argv[1])
    hold_threads()
    found = [run_line(words) for words in lines]
    sys.stdout.write("\n" + json.dumps(found))
