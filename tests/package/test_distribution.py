"""What people install: the wheel, made from the source distribution, in an empty environment."""

import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
LIGHT = ("excel", "plot", "completion")
DEVELOPMENT = {"test", "docs", "engines", "bench", "integrations-test"}


def call(*command: str | Path, folder: Path) -> str:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> dict[str, Path]:
    """Build from a copy of the files that Git knows, as a release does."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    files = call("git", "ls-files", "-z", folder=ROOT).split("\0")
    for name in filter(None, files):
        if (ROOT / name).exists():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(built)]
    call(*build, folder=source)
    return {path.suffix: path for path in built.iterdir()}


def test_the_wheel_has_all_files_of_the_package_and_nothing_else(distributions):
    tracked = call("git", "ls-files", "-z", "src/ordinate", folder=ROOT).split("\0")
    expected = {name.removeprefix("src/") for name in tracked if name and (ROOT / name).exists()}
    packed = set(zipfile.ZipFile(distributions[".whl"]).namelist())
    assert {name for name in packed if ".dist-info/" not in name} == expected
    assert "ordinate/py.typed" in packed


def test_the_source_distribution_has_licence_and_tests(distributions):
    with tarfile.open(distributions[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "tests/test_project.py"} <= names


def install(wheel: Path, extras: str, folder: Path) -> Path:
    """Install into an empty environment; return its folder of programs."""
    call(sys.executable, "-m", "venv", folder, folder=folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "-c"]
    call(*pip, ROOT / "constraints.txt", f"{wheel}{extras}", folder=folder)
    return programs


@pytest.mark.parametrize("extras", ["", f"[{','.join(LIGHT)}]"], ids=["base", "light"])
def test_the_wheel_works_in_an_empty_environment(distributions, tmp_path, extras):
    programs = install(distributions[".whl"], extras, tmp_path)
    example = call(programs / "python", "-m", "ordinate.examples", "cefr", folder=tmp_path)
    told = ["evaluate", example.strip(), "--gold", "gold", "--predicted", "predicted"]
    text = call(programs / "ordinate", *told, folder=tmp_path)
    assert "quadratic_kappa  higher  0.792" in text
    assert call(programs / "python", "-m", "ordinate", *told, folder=tmp_path) == text
    call(programs / "ordinate", *told, "-o", "report.html", folder=tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 50_000
    if extras:
        call(programs / "ordinate", "--print-completion", "bash", folder=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - DEVELOPMENT))
def test_every_extra_installs_and_runs(distributions, tmp_path, extra):
    programs = install(distributions[".whl"], f"[{extra}]", tmp_path)
    call(programs / "python", "-m", "pip", "check", folder=tmp_path)
    assert "ordinate" in call(programs / "ordinate", "--version", folder=tmp_path)
