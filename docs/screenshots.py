"""Take the pictures of pages that the README shows. Run by `make screenshots`; needs Chromium."""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

import ordinate.examples as shipped

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from page_browser import PHONE, WIDE, PageBrowser  # noqa: E402 - where the line before has it

SYSTEMS = "tfidf,forest,transformer,ensemble"
CEFR = f"evaluate {shipped.locate_example('cefr')}"
PICTURES = {  # by name: theme, width, height, command
    "evaluation": ("light", WIDE, 922, CEFR),
    "evaluation-phone": ("light", PHONE, 620, CEFR),
    "comparison": (
        "dark",
        WIDE,
        612,
        f"compare {shipped.locate_example('systems')} --gold gold --systems {SYSTEMS}",
    ),
}


def take_pictures(folder: Path) -> None:
    """Write a PNG of the top of each page."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        browser = PageBrowser(Path(temporary))
        for name, (theme, width, height, command) in PICTURES.items():
            page = Path(temporary) / f"{name}.html"
            run = [sys.executable, "-m", "ordinate", *command.split(), "-o", str(page)]
            subprocess.run(run, check=True)
            browser.open(page, theme=theme, width=width)
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
            (folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
        browser.close()


if __name__ == "__main__":
    take_pictures(ROOT / "docs" / "images")
