"""Every deliberate error: what happened, what is known, what to do next."""

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

__all__ = [
    "BadFile",
    "BadIds",
    "BadInput",
    "BadOption",
    "BadOutput",
    "BadProbabilities",
    "BadScale",
    "BadStore",
    "BadValues",
    "BadWeights",
    "FolderLocked",
    "MissingExtra",
    "MissingLabels",
    "NoItems",
    "NotApplicable",
    "NotFitted",
    "OffScale",
    "OrdinateError",
    "UnequalLengths",
    "UnknownMetric",
]

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # of a file that cannot grow
LONGEST_VALUE = 300  # letters of a value that an error repeats
PASSWORD_AT_HOST = re.compile(  # not so C:/ann@host.csv, nor what stands behind a folder
    r"^([^:]*://[^:]*|(?=[^:]*//)[^:]*|(?![a-z]:[/\\])[^:/\\]*):(.*)@", re.IGNORECASE | re.DOTALL
)
# Of an address, or a "host=h port=1"; a name is looked for from its start, or long words take long.
PARAMETER = re.compile(r"(?<![^?&=\s])([^?&=\s]*)=([^&]*?)(?=&|\s\w+=|\Z)")
PASSWORD_NAME = re.compile(r"(password|passwd|pwd)\Z", re.IGNORECASE)
# Within words of Persian and of Indian languages, and within emoji; they drive no terminal.
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


class OrdinateError(ValueError):
    """The base of all errors that Ordinate raises on purpose."""


class BadScale(OrdinateError):
    """A scale that cannot order anything, or none at all."""


class OffScale(OrdinateError):
    """Labels that the scale does not have; `proposed_map` has the nearest level of each, or None.

    `way` says what to do about them, which depends on where they were met.
    """

    def __init__(
        self, message: str, way: str = "", proposed_map: Mapping[Any, Any] | None = None
    ) -> None:
        super().__init__(f"{message} {way}".rstrip())
        self.way, self.proposed_map = way, dict(proposed_map or {})

    def advise(self, way: str) -> "OffScale":
        """Return the error with another advice, where it has one."""
        if not self.way:
            return self
        self.args, self.way = (str(self).replace(self.way, way),), way
        return self


class MissingLabels(OrdinateError):
    """Gold labels or predictions that are not there."""


class UnequalLengths(OrdinateError):
    """Columns that should describe the same items and do not."""


class BadWeights(OrdinateError):
    """Weights or counts that are negative, not finite or not numbers."""


class BadProbabilities(OrdinateError):
    """Probabilities that are none, or whose level is unknown."""


class BadValues(OrdinateError):
    """Targets or predictions that are no finite numbers."""


class NotFitted(OrdinateError):
    """An answer that is asked for before anything was learned."""


class NoItems(OrdinateError):
    """Nothing to evaluate."""


class UnknownMetric(OrdinateError):
    """A metric that the catalogue does not have."""


class BadOption(OrdinateError):
    """An option that does not exist, or a value that it does not take."""


class NotApplicable(OrdinateError):
    """A metric that has no meaning for this summary; the message is the reason."""


class BadInput(OrdinateError):
    """A file or column that cannot be read as asked."""


class BadIds(BadInput):
    """Ids that are missing, or that several rows share."""


class BadFile(BadInput):
    """A file that cannot be read, or that lacks a column."""

    def __init__(self, message: str, file: str = "", column: str | None = None) -> None:
        super().__init__(message)
        self.file, self.column = file, column  # what people call the file, and what it lacks


class BadOutput(OrdinateError):
    """A result that cannot be written where it should go."""


class BadStore(OrdinateError):
    """A stored artefact that is not what its manifest says, or not safe to open."""


class FolderLocked(OrdinateError):
    """A folder that another process is working in."""


class MissingExtra(OrdinateError):
    """A part of Ordinate that is not installed."""


OptionNaming = Callable[[str, Any], str | None]  # of an option and its value; None where it lacks


def _name_argument(option: str, value: Any) -> str:
    return f"{option}={'…' if value is ... else repr(value)}"


_naming: ContextVar[OptionNaming] = ContextVar("naming", default=_name_argument)


@contextmanager
def name_options(naming: OptionNaming) -> Iterator[None]:
    """Let errors name options otherwise than as arguments of Python, such as by their flags."""
    token = _naming.set(naming)
    try:
        yield
    finally:
        _naming.reset(token)


def word_advice(advice: str, otherwise: str = "", **options: Any) -> str:
    """Return advice with options as the caller writes them, or other advice to who has none.

    Of errors alone: a report reads the same however it was made.

    >>> word_advice("Leave them out with {missing}.", missing="drop")
    "Leave them out with missing='drop'."
    """
    named = {option: _naming.get()(option, value) for option, value in options.items()}
    return otherwise if None in named.values() else advice.format(**named)


def suggest_names(wanted: str, known: list[str], titled: list[str] | None = None) -> str:
    """Return ' Did you mean …?' for the nearest known names, or nothing.

    >>> suggest_names("macro_f1", ["macro_mse", "f1_macro"])
    " Did you mean 'f1_macro' or 'macro_mse'?"
    """
    from difflib import get_close_matches

    word = wanted.lower()[:LONGEST_VALUE]
    lower = {name.lower(): name for name in known}
    same_parts = [n for low, n in lower.items() if set(low.split("_")) == set(word.split("_"))]
    within = [name for low, name in lower.items() if len(word) > 1 and word in low]
    close = [lower[low] for low in get_close_matches(word, lower, n=3, cutoff=0.5)]
    near = list(dict.fromkeys([*same_parts, *(titled or []), *within, *close]))[:3]
    return f" Did you mean {' or '.join(map(shorten, near))}?" if near else ""


def shorten(value: object, longest: int = LONGEST_VALUE) -> str:
    """Return a value from the data as an error shows it, however long it is.

    >>> shorten("B3"), len(shorten("x" * 1000))
    ("'B3'", 300)
    """
    try:
        shown = repr(value)
    except ValueError:  # of thousands of digits
        shown = f"<{type(value).__name__} of too many digits>"
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def hide_password(url: str) -> str:
    """Return the address of a database without the password, and a plain path as it is.

    >>> hide_password("postgresql://ann:secret@host:5432/essays")
    'postgresql://ann@host:5432/essays'
    >>> hide_password("postgresql://host/essays?user=ann&password=secret")
    'postgresql://host/essays?user=ann&password=…'
    """

    def hide_value(found: re.Match[str]) -> str:
        return f"{found[1]}=…" if _names_password(found[1]) else found[0]

    return PARAMETER.sub(hide_value, PASSWORD_AT_HOST.sub(r"\1@", url))


def _names_password(parameter: str) -> bool:
    from urllib.parse import unquote  # noqa: PLC0415 - start-up: few name an address

    return PASSWORD_NAME.search(unquote(parameter)) is not None


def list_passwords(url: str) -> list[str]:
    """Return the passwords of an address, as it has them and as a server gets them."""
    from urllib.parse import unquote  # noqa: PLC0415 - start-up: few name an address

    named = [value for name, value in PARAMETER.findall(url) if _names_password(name)]
    found = [*(password for _, password in PASSWORD_AT_HOST.findall(url)), *named]
    return [text for password in found for text in (password, unquote(password)) if text]


def hide_passwords(message: str, words: Iterable[str]) -> str:
    """Return a message without the passwords of addresses among the words of a command.

    >>> hide_passwords("There is no sql:/ann:secret@host/e.", ["sql://ann:secret@host/e"])
    'There is no sql@host/e.'
    """
    for word in words:
        for form in {word, repr(word)[1:-1], str(Path(word))} if list_passwords(word) else ():
            message = message.replace(form, hide_password(form))
    return message


def replace_control_characters(text: str) -> str:
    r"""Return a text on one line, without control characters, which could drive a terminal.

    >>> replace_control_characters("red\n\x1b[1m")
    'red �[1m'
    """
    if text.isprintable():
        return text
    spaced = (" " if letter.isspace() else letter for letter in text)
    return "".join(
        x if x.isprintable() or x in JOINERS else "\N{REPLACEMENT CHARACTER}" for x in spaced
    )
