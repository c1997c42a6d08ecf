"""A server that is not there: its tests are skipped, and in CI they fail."""

import pytest

from engines.servers import miss_server


def test_a_missing_server_skips_a_test_and_fails_it_in_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="there is no Java"):
        miss_server("Java")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"There is no Java\. Install it"):
        miss_server("Java")
