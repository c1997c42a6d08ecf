"""Findings: what is missing or odd, how bad it is, and where."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from ordinate.errors import OrdinateError

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
T = TypeVar("T")


@dataclass(frozen=True)
class Finding:
    """Something missing or odd."""

    severity: Severity
    where: str
    what: str


@dataclass
class Findings:
    """A list of findings that grows."""

    found: list[Finding] = field(default_factory=list)

    def say(self, severity: Severity, where: str, what: str) -> None:
        """Add a finding."""
        self.found.append(Finding(severity, where, what))

    def tried(self, where: str, make: Callable[..., T], *arguments: str) -> T | None:
        """Return what can be made, or None with the reason among the findings."""
        try:
            return make(*arguments)
        except OrdinateError as problem:
            self.say("error", where, str(problem))
        except OSError as problem:
            self.say("error", where, f"It cannot be read: {problem.strerror}.")
        return None
