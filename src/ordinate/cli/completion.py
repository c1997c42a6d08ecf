"""Completion in shells: `ordinate --print-completion bash` prints the script that a shell reads."""

import argparse
from collections.abc import Callable
from typing import Any

from ordinate.cli.flags import InputPath, StorePath
from ordinate.errors import MissingExtra

SHELLS = ("bash", "zsh", "tcsh")


def add_flag(
    parser: argparse.ArgumentParser, build_whole: Callable[[], argparse.ArgumentParser]
) -> None:
    """Add the flag; all commands with all flags are built only when it is given."""

    class PrintCompletion(argparse.Action):
        def __call__(self, _parser: Any, _options: Any, shell: Any, _flag: Any = None) -> None:
            print(render_completion(build_whole(), shell))
            parser.exit(0)

    parser.add_argument(
        "--print-completion",
        choices=SHELLS,
        action=PrintCompletion,
        help="print the script that completes commands, flags and files in a shell, and exit",
    )


def render_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that completes a command line in a shell."""
    try:
        import shtab
    except ImportError:
        raise MissingExtra("Completion needs shtab: pip install 'ordinate[completion]'") from None
    _complete_paths(parser, shtab.FILE, shtab.DIRECTORY)
    script: str = shtab.complete(parser, shell=shell)
    return script


def _complete_paths(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Say which arguments are paths: those whose type is one, and what is written."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            for command in action.choices.values():
                _complete_paths(command, file, folder)
        elif action.type is StorePath:
            action.complete = folder  # type: ignore[attr-defined] # an attribute of shtab's
        elif action.type is InputPath or action.dest in {"file", "files", "output"}:
            action.complete = file  # type: ignore[attr-defined] # the same
