"""What benchmarks share: timing, starting commands, targets, and pages in Markdown."""

import os
import platform
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

BURST = 0.1  # seconds of repetitions
Call = Callable[[], Any]
Table = list[list[str]]


def log(message: str) -> None:
    """Say on the terminal how far the run is."""
    print(message, file=sys.stderr, flush=True)


def burst(call: Call) -> list[float]:
    """Time a call again and again for a moment, once at least."""
    times: list[float] = []
    end = time.perf_counter()
    last = end + BURST
    while end < last:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        times.append(end - start)
    return times


# A small process starts the command: a child is charged with the memory of the one that started it.
LAUNCHER = """
import os, sys, time
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
start = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(child, 0)
print(time.perf_counter() - start, used.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def launch(*command: str) -> tuple[float, float]:
    """Run a command in a process of its own; return its seconds and its peak memory in bytes."""
    found = subprocess.run(
        [sys.executable, "-c", LAUNCHER, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, kibibytes, code = found.stdout.split()
    if code != "0":
        raise SystemExit(f"{' '.join(command)} ended with {code}.")
    return float(seconds), float(kibibytes) * 1024


@dataclass(frozen=True)
class Target:
    """A ratio or a size to reach, what was measured, and why it may be missed."""

    claim: str
    limit: float
    measured: float
    reason: str
    at_least: bool = False
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def row(self) -> list[str]:
        """Return the row of the table of targets."""
        bound = "at least" if self.at_least else "at most"
        return [
            self.claim,
            f"{bound} {self.limit:g}{self.unit}",
            f"{shown(self.measured, digits=4)}{self.unit}",
            "met" if self.met else "**missed**",
            "" if self.met else self.reason,
        ]


def wrapped(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of the length that the project keeps to."""
    return textwrap.fill(text, 100, subsequent_indent=indent, break_on_hyphens=False)


def processor() -> str:
    """Return the model of the processor, its number of cores and its caches."""
    facts = cpu_facts()
    caches = [
        f"{name.removesuffix(' cache')} {readable(int(text.split()[0]))}"
        for name, text in facts.items()
        if name.endswith(" cache") and name != "L1i cache"
    ]
    model = facts.get("Model name", platform.processor() or "unknown")
    return f"{model}, {os.cpu_count()} cores; all caches together: {', '.join(caches) or 'unknown'}"


def cpu_facts() -> dict[str, str]:
    """Return what lscpu says, caches in bytes."""
    if not shutil.which("lscpu"):
        return {}
    english = {**os.environ, "LC_ALL": "C"}
    output = subprocess.run(
        ["lscpu", "--bytes"], capture_output=True, text=True, check=True, env=english
    )
    lines = (line.partition(":") for line in output.stdout.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def last_cache() -> int:
    """Return the bytes of the last cache before memory; 0 if unknown."""
    return int(cpu_facts().get("L3 cache", "0").split()[0])


def readable(size: int) -> str:
    """Return bytes as people say them."""
    return f"{size / 2**20:.3g} MiB" if size >= 2**20 else f"{size / 2**10:.3g} KiB"


def shown(value: float, digits: int = 3) -> str:
    """Return a number with so many digits that count."""
    if value >= 10**digits / 10:
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}" if value >= 0.01 else f"{value:.4f}"


def markdown(head: Sequence[str], rows: Table) -> str:
    """Return a table in Markdown, texts to the left and numbers to the right."""
    right = [all(row[k][:1] in "0123456789–" for row in rows) for k in range(len(head))]
    rule = ["---:" if numeric else "---" for numeric in right]
    return "\n".join(f"| {' | '.join(row)} |" for row in [list(head), rule, *rows])
