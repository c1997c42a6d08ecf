"""What POSIX has and Windows has not is called nowhere: everything runs without it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ordinate.examples import locate_example

POSIX_NAMES = """
chown chroot copy_file_range fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs getegid
geteuid getgid getgroups getloadavg getpgid getpgrp getpriority getsid getuid killpg lchown lockf
mkfifo mknod nice openpty pathconf pipe2 posix_fadvise posix_fallocate pread preadv pwrite pwritev
sched_getaffinity sched_setaffinity sendfile setpgid setpriority setsid statvfs sync sysconf
"""  # of os, which Windows has not

# Run by every process at its start, workers included. The lock of filelock has a half for Windows,
# so it is imported before; PyTorch asks whether it is on Windows, and keeps its hook of fork.
WITHOUT_POSIX = f"""
import os, sys
try:
    import filelock
except ImportError:
    pass
for name in ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp"):
    sys.modules[name] = None
for name in {POSIX_NAMES.split()}:
    if hasattr(os, name):
        delattr(os, name)
"""
IMPORT_ALL = """
import os, pkgutil, sys
import ordinate
assert not hasattr(os, "fork") and sys.modules["fcntl"] is None
from ordinate.errors import MissingExtra
count = 0
for module in pkgutil.walk_packages(ordinate.__path__, "ordinate."):
    if not module.name.endswith("__main__"):
        try:
            __import__(module.name)
            count += 1
        except MissingExtra:
            pass
        except ImportError as problem:  # a library that is not installed here
            if (problem.name or "ordinate").partition(".")[0] in {"ordinate", "fcntl", "resource"}:
                raise
print(count)
"""
RUN = """
import sys
from ordinate.cli.main import main
for line in sys.stdin:
    code = main(line.split())
    assert code == 0, (line, code)
"""
EVALUATION = """
evaluate levels.csv --gold gold --predicted predicted -o page.html
evaluate levels.csv --gold gold --predicted predicted --groups task --format json -o values.json
compare systems.csv --gold gold --systems tfidf,forest --metrics mae -o systems.json
power systems.csv --gold gold --systems tfidf,forest --metric mae
evaluate-regression densities.csv --target density --predicted temperature --unit kg
verify page.html
metrics mae
init study
check -e study
tune-regression densities.csv --target density --models poly_ridge --trials 1 --jobs 2 -e q
predict-regression densities.csv -e q -o predictions.csv
"""
MODELS = """
init study
tune -e study --preset minimal --jobs 2
predict -e study
rank -e study
tune-regression densities.csv --target density --unit kg --preset minimal --jobs 2 -e found
predict-regression densities.csv -e found -o predictions.csv
"""


@pytest.fixture
def settings(tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(WITHOUT_POSIX, "utf-8")
    found = [str(hooks), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(found)}


def run_python(code, settings, folder, told=""):
    command = [sys.executable, "-c", code]
    ran = subprocess.run(
        command, input=told, cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr
    return ran.stdout


def test_every_module_is_imported_without_what_only_posix_has(settings, tmp_path):
    package = Path(__file__).parents[2] / "src" / "ordinate"
    modules = len(list(package.rglob("*.py")))
    assert int(run_python(IMPORT_ALL, settings, tmp_path)) > 0.9 * modules


@pytest.mark.parametrize(
    ("commands", "files"),
    [
        (EVALUATION, {"page.html", "values.json", "systems.json", "predictions.csv"}),
        pytest.param(MODELS, {"predictions.csv"}, marks=pytest.mark.slow),
    ],
    ids=["evaluation", "models"],
)
def test_commands_run_without_what_only_posix_has(settings, tmp_path, commands, files):
    work = tmp_path / "work"
    work.mkdir()
    for name, example in {"levels": "cefr", "systems": "systems", "densities": "densities"}.items():
        (work / f"{name}.csv").write_bytes(locate_example(example).read_bytes())
    run_python(RUN, settings, work, commands.strip())
    assert files <= {path.name for path in work.iterdir()}
