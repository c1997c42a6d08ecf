"""Run tutorials as Jupyter notebooks: a page of Markdown is one, with its shown outputs in it.

What a cell prints stands in a fenced text below it, and a view that it draws in the picture below
it. `python docs/notebooks.py FOLDER` writes the notebooks themselves, to open and change.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

TUTORIALS = Path(__file__).parent / "tutorials"
CELL = re.compile(
    r"^```python\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<text>.*?)^```\n|\n!\[[^\]]*\]\((?P<picture>[\w/-]+\.svg)\)\n)?",
    re.DOTALL | re.MULTILINE,
)
PICTURE = "image/svg+xml"
SECONDS = 900  # of one cell
RUN = "from nbclient.cli import main; main()"  # in a process of its own: it needs an event loop
# Views are drawn as on other pages: text can be compared, pixels cannot. A notebook without
# ipywidgets is told so by tqdm, which Optuna loads.
SET_UP = f"""
import warnings
from ordinate.render import svg
warnings.filterwarnings("ignore", "IProgress not found")
get_ipython().display_formatter.formatters["{PICTURE}"].for_type_by_name(
    "ordinate.render.matplotlib_charts", "Display", lambda display: svg.render(display.chart)
)
"""


def make_notebook(page: str) -> Any:
    """Return a page as a notebook, without what its cells print."""
    cells, end = [], 0
    for found in CELL.finditer(page):
        if prose := page[end : found.start()].strip():
            cells.append(nbformat.v4.new_markdown_cell(prose))
        cells.append(nbformat.v4.new_code_cell(found["code"].rstrip()))
        end = found.end()
    if prose := page[end:].strip():
        cells.append(nbformat.v4.new_markdown_cell(prose))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"  # nbformat draws one at random
    return nbformat.v4.new_notebook(cells=cells)


def with_cells(page: str) -> tuple[str, dict[str, str]]:
    """Return a page with what its cells print, and each picture as SVG by the name of its file."""
    outputs, pictures = run_cells(make_notebook(page)), {}

    def show(cell: re.Match[str]) -> str:
        text, drawing = next(outputs)
        if bool(cell["text"]) != bool(text) or bool(cell["picture"]) != bool(drawing):
            raise ValueError(f"the page shows something else than its cell:\n{cell[0]}\n{text}")
        if drawing:
            pictures[cell["picture"]] = drawing
        start, end = (place - cell.start() for place in cell.span("text"))
        return cell[0][:start] + text + cell[0][end:] if text else cell[0]

    return CELL.sub(show, page), pictures


def run_cells(notebook: Any) -> Iterator[tuple[str, str]]:
    """Run a notebook in a kernel and an empty folder; yield what each cell prints and draws."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SET_UP))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tutorial.ipynb"
        nbformat.write(notebook, file)
        # Settings and profiles of whoever runs it take no part.
        plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        plain |= dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"), folder)
        command = [sys.executable, "-c", RUN, "--inplace", f"--timeout={SECONDS}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
        if done.returncode:
            raise RuntimeError(done.stderr)
        ran = json.loads(file.read_text(encoding="utf-8"))
    for cell in ran["cells"][1:]:
        if cell["cell_type"] == "code":
            yield _read_outputs(cell)


def _read_outputs(cell: dict[str, Any]) -> tuple[str, str]:
    text = drawing = ""
    for output in cell["outputs"]:
        if output.get("name") == "stderr":
            raise ValueError(f"a cell complains: {''.join(output['text'])}")
        data = output.get("data", {"text/plain": output.get("text")})
        if PICTURE in data:
            drawing = "".join(data[PICTURE])
        else:
            text += "".join(data["text/plain"]).rstrip() + "\n"
    return "\n".join(line.rstrip() for line in text.split("\n")), drawing


def write_tutorial(path: Path) -> None:
    """Write a page and its pictures with what its cells print and draw now."""
    page, pictures = with_cells(path.read_text(encoding="utf-8"))
    path.write_text(page, encoding="utf-8")
    for name, drawing in pictures.items():
        picture = path.parent / name
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(drawing, encoding="utf-8")


def main(folder: str) -> None:
    """Write all tutorials as notebooks into a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path in TUTORIALS.glob("*.md"):
        notebook = make_notebook(path.read_text(encoding="utf-8"))
        nbformat.write(notebook, Path(folder) / f"{path.stem}.ipynb")


if __name__ == "__main__":
    main(*sys.argv[1:])
