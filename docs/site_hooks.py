"""What MkDocs does not do by itself: pages of metrics, API and project, formulas, examples.

Called by MkDocs, as `mkdocs.yml` says.
"""

import html
import inspect
import re
import sys
from collections.abc import Iterator
from doctest import BLANKLINE_MARKER, DocTestParser
from importlib import import_module
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import ordinate  # noqa: E402 - as the next
from build import MODULES, list_names  # noqa: E402 - of this folder, which MkDocs does not look into
from metric_pages import group_by_family, locate_page  # noqa: E402 - the same
from ordinate.metrics import SUMMARY_TYPES  # noqa: E402 - as the last
from ordinate.results.metric_catalogue import TITLES  # noqa: E402 - as the last

PROJECT_FILES = {  # which stand beside README
    "changes.md": "CHANGELOG.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "license.md": "LICENSE",
    "CITATION.cff": "CITATION.cff",
}
BOOSTS = (  # how far up search shows a page, by what its path begins with
    (("first-steps", "overview"), 4.0),
    (("metrics/", "license"), 3.0),
    (("api/", "tutorials/"), 1.5),
    (("studies/", "changes", "coming-from/"), 0.05),
)
SEARCH = 'data-md-component="search" role="dialog"'
FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.+?)\\[)\]]\s*</\1>', re.DOTALL)
EXAMPLES = re.compile(r'<code>(<span class="gp">.+?)</code>', re.DOTALL)  # with their prompts


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of metrics and of packages to the navigation."""
    for section in config.nav or []:
        if "Metrics" in section:
            section["Metrics"] = [section["Metrics"], *_list_metric_sections()]
        if "API" in section:
            pages = [{name: f"api/{name}.md"} for name in list_documented_packages()]
            section["API"] = [section["API"], *pages]
    return config


def _list_metric_sections() -> Iterator[dict[str, object]]:
    for kind in SUMMARY_TYPES:
        families = [
            {family.capitalize(): [{m.name: locate_page(m, kind)} for m in metrics]}
            for family, metrics in group_by_family(kind).items()
        ]
        yield {TITLES[kind].removeprefix("Metrics of ").capitalize(): families}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere, and those of the API."""
    for name, source in PROJECT_FILES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for name, text in list_api_pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(text: str, page: Page, **_: object) -> str:
    """Return a page whose links to files beside README lead to their pages, and back.

    Its examples are those of a session: prompt, code and output.
    """
    path = page.file.src_uri
    boost = next((boost for starts, boost in BOOSTS if path.startswith(starts)), 1.0)
    page.meta["search"] = {"boost": boost}
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]  # it is one screen
    text = text.replace("```python\n>>> ", "```pycon\n>>> ")
    beside = path in PROJECT_FILES
    for name, source in PROJECT_FILES.items():
        text = text.replace(f"]({source})" if beside else f"](../{source})", f"]({name})")
    return text.replace("](docs/", "](") if beside else text


def on_page_content(text: str, **_: object) -> str:
    """Return a page with its formulas as MathML, which needs neither scripts nor fonts.

    What is copied of its examples is their code, and empty lines of their output are empty.
    """
    text = EXAMPLES.sub(_add_code_to_copy, FORMULA.sub(_convert_formula, text))
    return text.replace(html.escape(BLANKLINE_MARKER), "")


def on_post_page(output: str, **_: object) -> str:
    """Return a page whose search has a name for those who cannot see it."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def _convert_formula(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)


def _add_code_to_copy(found: re.Match[str]) -> str:
    """Return examples with their code as what the theme copies: no prompts and no output."""
    examples = DocTestParser().get_examples(html.unescape(re.sub(r"<[^>]+>", "", found[1])))
    code = html.escape("".join(example.source for example in examples))
    return f'<code data-copy="{code}">{found[1]}</code>'


# --- the API -------------------------------------------------------------------------------------


def list_documented_packages() -> list[str]:
    """Return the packages and modules that have public names of their own."""
    return [name for name in (*ordinate.PACKAGES, *MODULES) if list_names(f"ordinate.{name}")]


def list_api_pages() -> dict[str, str]:
    """Return the text of every page of the API, by its path in `docs`.

    What two packages have is described where it is first named.
    """
    described: dict[int, tuple[str, str]] = {}
    names = list_documented_packages()
    links = "\n".join(f"- [`ordinate.{name}`]({name}.md)" for name in names)
    start = _describe_package("ordinate", "index.md", described)
    pages = {"api/index.md": f"{start}\n\n## Packages\n\n{links}\n"}
    for name in names:
        pages[f"api/{name}.md"] = _describe_package(f"ordinate.{name}", f"{name}.md", described)
    return pages


def _describe_package(package: str, page: str, described: dict[int, tuple[str, str]]) -> str:
    module = import_module(package)
    title = (inspect.getdoc(module) or "").split("\n\n")[0]
    parts = [f"# `{package}`", title]
    for name in sorted(list_names(package), key=lambda name: name[0].isupper()):
        value = getattr(module, name)
        place = f"{package}.{name}"
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            parts.append(f"## `{name}`\n\nA value: `{type(value).__name__}`.")
        elif described.setdefault(id(value), (page, place)) == (page, place):
            parts.append(f"::: {place}")
        else:
            other, called = described[id(value)]
            parts.append(f"`{name}` is described as [`{called}`]({other}#{called}).")
    return "\n\n".join(parts) + "\n"
