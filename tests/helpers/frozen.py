"""Every report that tests make, kept: what a change of structure leaves as it is.

make frozen FROZEN=build/before    # then change, then
make frozen FROZEN=build/after && diff -r build/before build/after
"""

import itertools
import os
import re
import tempfile
from pathlib import Path

from shown_output import blank_times_and_hashes

FOLDER = os.environ.get("FROZEN")
TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/[\w./-]*/")
OUTPUTS = {"-o", "--output", "--items"}
FORMS = (".txt", ".json", ".csv", ".md", ".tex")


def keep(name: str, *texts: str) -> None:
    """Keep texts of the test that runs, without times, hashes and temporary folders."""
    if FOLDER is None:
        return
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    path = Path(FOLDER, re.sub(r"[^\w.]+", "-", test)[:200] + ".txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", errors="replace") as file:
        for text in (f"--- {name}", *texts):
            file.write(TEMPORARY.sub("", blank_times_and_hashes(text)) + "\n")


def read_outputs(words: list[str]) -> list[str]:
    """Return the texts of files that a command was to write."""
    named = [Path(b) for a, b in itertools.pairwise(words) if a in OUTPUTS]
    found = [path for path in named if path.suffix in FORMS and path.is_file()]
    return [path.read_text("utf-8", errors="replace") for path in found]
