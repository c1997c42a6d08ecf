"""What the commands that search models share: configuration files, dry runs, and origins."""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ordinate.cli.config import format_command, format_toml, merge_flags
from ordinate.cli.flags import InputPath, add_flags, list_flag_types
from ordinate.cli.options import REPORT_FORMATS, add_output_options
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.tuning.search.settings import SearchSettings
    from ordinate.tuning.search.tuning import RunOrigin

REPORT_FLAGS: dict[str, type] = {
    "dry_run": bool,
    "format": str,
    "output": str,
    "force": bool,
    "details": bool,
}


def add_search_flags(parser: argparse.ArgumentParser, settings: Any) -> None:
    """Add the flags of the settings of a search, and those of all searches."""
    add_flags(parser.add_argument_group("search"), settings)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--config",
        metavar="FILE",
        type=InputPath,
        help="TOML file with any of these flags, such as trials = 5",
    )
    run.add_argument(
        "--dry-run", action="store_true", default=None, help="say what would be done; write nothing"
    )
    add_output_options(parser)
    parser.set_defaults(resumes=True, force=None)


def merge_search_flags(
    options: argparse.Namespace, settings: Any, data_flags: Mapping[str, type]
) -> dict[str, Any]:
    """Return the flags of the command line and of the configuration file; set those of reports."""
    types = {**data_flags, **list_flag_types(settings), **REPORT_FLAGS}
    flags = merge_flags(dict(vars(options)), options.config, types)
    if (named := flags.get("format", "text")) not in REPORT_FORMATS:
        raise BadOption(f"--format takes {', '.join(REPORT_FORMATS)}, not {named!r}.")
    options.format, options.force = flags.get("format"), flags.get("force", False)
    options.output, options.details = flags.get("output"), flags.get("details")
    return flags


def build_settings(settings: Any, flags: Mapping[str, Any]) -> Any:
    """Return the settings that flags say."""
    known = list_flag_types(settings)
    return settings(**{name: value for name, value in flags.items() if name in known})


def make_origin(
    command: str,
    flags: Mapping[str, Any],
    settings: "SearchSettings",
    data_flags: Sequence[str],
    *,
    positional: str | None = None,
    load: Sequence[str] = (),
) -> "RunOrigin":
    """Return the command line of a run, and a configuration file that repeats it."""
    from ordinate.tuning.search.tuning import RunOrigin

    own = settings.to_dict()
    said = {name: flags[name] for name in (*data_flags, *own) if name in flags}
    joined = {
        name: ",".join(value) if isinstance(value, list) else value for name, value in said.items()
    }
    spoken = {name: value for name, value in joined.items() if name != positional}
    line = format_command(command, spoken | {"load": list(load)})
    if positional is not None:
        words = f"ordinate {command}"
        line = f"{words} {shlex.quote(flags[positional])}{line.removeprefix(words)}"
    resolved = {name: flags.get(name) for name in data_flags} | own
    return RunOrigin(line, format_toml(resolved))
