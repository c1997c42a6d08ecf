"""Write pages of metrics, public names, schemas, and every table, output and picture shown.

The table of engines stands between two comments, made of the engines that tests run over.
Run by `make docs`. An output stands in a fenced block below a comment `<!-- output of: … -->`. The
commands of a page run one after the other in a copy of the folder of the shipped examples.
Tutorials are run as notebooks.
"""

import contextlib
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import metric_pages
import ordinate
from ordinate.metrics import SUMMARY_TYPES, get_summary_type, list_metrics
from ordinate.metrics.references import REFERENCES
from ordinate.render import svg

ROOT = Path(__file__).parent.parent
PUBLIC_NAMES = ROOT / "docs" / "public-names.txt"
MODULES = (
    "inference.prediction_intervals",
    "integrations.boosting",
    "integrations.frames",
    "integrations.huggingface",
    "integrations.mlflow",
    "integrations.optuna",
    "integrations.pytest",
    "integrations.sklearn",
    "integrations.torch",
    "metrics.prediction_intervals",
    "results.decoding",
    "results.distribution_shift",
    "results.residuals",
    "tuning.classify",
    "tuning.experiment.check",
    "tuning.experiment.new_experiment",
    "tuning.features",
    "tuning.models",
    "tuning.regress",
)  # with public names that their package does not import
EXAMPLES = ROOT / "src" / "ordinate" / "examples"
CONSTRAINTS = ROOT / "constraints.txt"
ENGINES = re.compile(r"(<!-- table of engines -->\n\n)(.*?)(\n\n<!-- end of table -->)", re.DOTALL)
GALLERY = ROOT / "docs" / "gallery.md"
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PICTURES = re.compile(r"^!\[.+?\]\(gallery/(\w+)\.svg\)$", re.MULTILINE)
CHECKED = re.compile(r"(?<=<!-- check_estimator -->\n).*?(?=<!-- end -->)", re.DOTALL)
SHOWN = re.compile(r"(<!-- output of: (.+?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def output_of(commands: str, folder: Path) -> str:
    """Run `ordinate` commands, joined by &&, in a folder, and return what the last one prints."""
    return [_run_command(command, folder) for command in commands.split(" && ")][-1]


def _run_command(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    if program != "ordinate":
        raise ValueError(f"only ordinate is run, not {program}")
    run = [sys.executable, "-m", "ordinate", *arguments]
    page = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True, env=page)
    return done.stdout


def with_outputs(text: str) -> str:
    """Return a page with its shown outputs regenerated."""
    if not SHOWN.search(text):
        return text
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(EXAMPLES, Path(temporary) / "examples"))
        return SHOWN.sub(
            lambda block: block[1] + keep_stable(block[3], output_of(block[2], folder)) + block[4],
            text,
        )


def keep_stable(shown: str, printed: str) -> str:
    """Return what a page shows where it is what a command prints but for times and hashes."""
    blank = import_from_tests("helpers.shown_output").blank_times_and_hashes
    return shown if blank(shown) == blank(printed) else printed


def import_from_tests(name: str) -> ModuleType:
    """Return a module of the tests."""
    sys.path.insert(0, str(ROOT / "tests"))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(ROOT / "tests"))


def with_engines(text: str) -> str:
    """Return a page with its table of engines regenerated."""
    engines = import_from_tests("engines.engine_list")
    table = engines.format_engines(CONSTRAINTS.read_text(encoding="utf-8"))
    return ENGINES.sub(lambda block: block[1] + table + block[3], text)


# --- the gallery ---------------------------------------------------------------------------------


def draw_gallery(text: str) -> dict[str, str]:
    """Run the code of the gallery, and return each picture as SVG, by the name of its file.

    A picture is of the view that is drawn into the variable of its name. The code runs in an empty
    folder.
    """
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code in CODE.findall(text):
            exec(compile(code, "gallery.md", "exec"), found)  # noqa: S102 - a page of ours
    return {name: svg.render(found[name].chart) for name in PICTURES.findall(text)}


def write_gallery() -> None:
    """Write the pictures of the gallery, and remove those that it has no longer."""
    folder = GALLERY.with_suffix("")
    folder.mkdir(exist_ok=True)
    drawn = draw_gallery(GALLERY.read_text(encoding="utf-8"))
    for picture in folder.glob("*.svg"):
        if picture.stem not in drawn:
            picture.unlink()
    for name, drawing in drawn.items():
        (folder / f"{name}.svg").write_text(drawing, encoding="utf-8")


def write_metric_pages() -> None:
    """Write the list of all metrics and the page of each; remove those of metrics that went."""
    pages = metric_pages.list_pages()
    for path in (ROOT / "docs" / "metrics").rglob("*.md"):
        if path.relative_to(ROOT / "docs").as_posix() not in pages:
            path.unlink()
    for name, text in pages.items():
        path = ROOT / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# --- public names --------------------------------------------------------------------------------


def list_names(package: str) -> list[str]:
    """Return the public names of a package; `ordinate` has some that need an extra, too."""
    module = import_module(package)
    return sorted({*getattr(module, "__all__", ()), *getattr(module, "_HOMES", ())})


def list_public_names() -> Iterator[str]:
    """Yield every public name with its signature: what users may rely on.

    Members of a class stand where it is first named.
    """
    described: set[type] = set()
    for package in ("ordinate", *(f"ordinate.{name}" for name in (*ordinate.PACKAGES, *MODULES))):
        module = import_module(package)
        for name in list_names(package):
            value = getattr(module, name)
            yield f"{package}.{name}{_format_signature(value)}"
            if inspect.isclass(value) and value not in described:
                described.add(value)
                yield from _list_members(f"{package}.{name}", value)


def _list_members(path: str, owner: type) -> Iterator[str]:
    for name, member in sorted(inspect.getmembers_static(owner)):
        home = next(base for base in owner.__mro__ if name in vars(base))
        if not name.startswith("_") and home.__module__.startswith("ordinate."):
            yield f"{path}.{name}{_format_signature(getattr(member, '__func__', member))}"


def _format_signature(value: Any) -> str:
    """Return the parameters and their defaults; types differ between versions of Python."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
        return ""
    parameters = inspect.signature(value).parameters.values()
    plain = [one.replace(annotation=one.empty) for one in parameters]
    own = inspect.Signature([one for one in plain if one.name not in ("self", "cls")])
    shorter = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", str(own))
    return re.sub(r"<function .*? at 0x[0-9a-f]+>", "...", shorter)


def main() -> None:
    """Write everything."""
    every = [metric for kind in SUMMARY_TYPES for metric in list_metrics(get_summary_type(kind))]
    unknown = {metric.reference for metric in every} - set(REFERENCES) - {""}
    if unknown:
        raise ValueError(f"references without an entry: {unknown}")
    write_metric_pages()
    PUBLIC_NAMES.write_text("\n".join([*list_public_names(), ""]), encoding="utf-8")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        page.write_text(
            with_engines(with_outputs(page.read_text(encoding="utf-8"))), encoding="utf-8"
        )
    write_gallery()
    notebooks = import_module("notebooks")
    for page in sorted(notebooks.TUTORIALS.glob("*.md")):
        notebooks.write_tutorial(page)
    import_module("report_schemas").write_schemas()
    page = ROOT / "docs" / "sklearn.md"
    table = import_module("estimator_checks").format_table()  # which fits models for a while
    page.write_text(CHECKED.sub(table + "\n", page.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
