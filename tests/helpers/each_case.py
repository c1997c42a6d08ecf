"""One test of many cases that are checked alike and at once, where a test of each would cost more.

Thousands of tests that last a millisecond each take minutes to collect, set up and report.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def each_case(name: str, cases: Mapping[str, Any] | Sequence[Any]) -> Callable[[Test], Test]:
    """Call a test with every case as its argument `name`, and raise all that failed, by name."""
    named = cases if isinstance(cases, Mapping) else {str(case): case for case in cases}
    assert len(named) == len(cases) > 0

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def check(**arguments: Any) -> None:
            failures = []
            for title, case in named.items():
                try:
                    test(**arguments, **{name: case})
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - raised below
                    failure.add_note(f"{name}: {title}")
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(named)} cases", failures)

        signature = inspect.signature(test)
        others = [x for x in signature.parameters.values() if x.name != name]
        check.__signature__ = signature.replace(parameters=others)
        return check

    return decorate
