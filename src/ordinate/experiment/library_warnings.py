"""What libraries warn of, as notes that go with a result."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ordinate.errors import printable


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect warnings as notes, each once.

    >>> with noted() as notes:
    ...     warnings.warn("not converged", stacklevel=1)
    >>> notes
    ['not converged']
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    found = (printable(str(each.message)).strip() for each in caught)
    notes.extend(dict.fromkeys(found))
