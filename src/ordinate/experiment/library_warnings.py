"""What libraries warn of, as notes that go with a result."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ordinate.errors import replace_control_characters


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect warnings as notes, each once.

    >>> with collect_warnings() as notes:
    ...     warnings.warn("not converged", stacklevel=1)
    >>> notes
    ['not converged']
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    found = (replace_control_characters(str(each.message)).strip() for each in caught)
    notes.extend(dict.fromkeys(found))
