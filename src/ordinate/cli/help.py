"""How the command line explains itself: `--help`, and `--help-files` for the options of files."""

import argparse
from collections.abc import Iterable
from textwrap import fill
from typing import Any

FILES = "files and databases"  # the group of options that --help-files shows
EXAMPLES = """examples:
  ordinate evaluate data --hive --by language --memory 500MB
  ordinate evaluate run.tsv --gold-file gold.tsv --header none --columns topic,id,level \\
    --id topic,id --gold level --predicted level --bad-lines skip
  ordinate evaluate --sql sqlite:///runs.db --query 'select level, guess from essays' \\
    --gold level --predicted guess
"""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help whose sentences are wrapped, and whose examples stand as they are."""

    heading: str | None = None  # of the options that are being added

    def start_section(self, heading: str | None) -> None:
        """Begin a group of options."""
        self.heading = heading
        super().start_section(heading)

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        """Add the options of a group, but for those of files, which have their own help."""
        if self.heading != FILES:
            super().add_arguments(actions)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else fill(text, width, initial_indent=indent)

    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None,
    ) -> str:
        """Return what is needed alone: the groups of options say what else there is."""
        del groups
        needed = [one for one in actions if not one.option_strings or one.required]
        text = super()._format_usage(usage, needed, [], prefix)
        return text.replace(self._prog, f"{self._prog} [options]", 1)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, argparse.BooleanOptionalAction):
            return ", ".join(action.option_strings[:-1]).replace("--", "--[no-]")
        return super()._format_action_invocation(action)


class FileHelpFormatter(HelpFormatter):
    """Help on the options of files, and on no other."""

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        """Add the options of files."""
        if self.heading == FILES:
            argparse.RawDescriptionHelpFormatter.add_arguments(self, actions)


class ShowFileOptions(argparse.Action):
    """Show the options of files, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        """Show them."""
        del given
        parser.formatter_class, parser.description = FileHelpFormatter, None
        parser.epilog = EXAMPLES
        parser.print_help()
        parser.exit()
