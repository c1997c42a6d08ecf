"""The description of the package: README without what leads into the repository."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"<img [^>]+>\n+")
LINKS = "\n- ["  # how the list of links begins, which is the end of README
MORE = """
The documentation is in `docs/` of the source distribution; `ordinate --help` lists the commands.
"""


class Description(MetadataHookInterface):
    """Makes the description: where a package index shows it, relative links lead nowhere."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = PICTURE.sub("", readme.partition(LINKS)[0]) + MORE
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
