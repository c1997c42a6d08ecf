"""Records between runs: computed once, and again when they are not as they were written."""

import json

import pytest

from ordinate.tuning.search.record_cache import load_or_compute


class Source:
    """Computes records, and counts how often."""

    def __init__(self, record):
        self.record, self.count = record, 0

    def __call__(self):
        self.count += 1
        return dict(self.record)


@pytest.fixture
def source():
    return Source({"value": 3, "failed": None})


def is_usable(record):
    return record.get("value") == 3


def load(path, source):
    return load_or_compute(path, is_usable, source)


def test_a_record_is_computed_once(tmp_path, source):
    path = tmp_path / "deep" / "record.json"
    assert load(path, source) == load(path, source) == source.record
    assert source.count == 1
    assert json.loads(path.read_text()).keys() == {"value", "failed", "digest"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: "{",
        lambda _: "[]",
        lambda _: "{}",
        lambda text: text.replace("3", "4"),
        lambda text: text.replace("value", "other"),
        lambda text: json.dumps(json.loads(text) | {"digest": None}),
        lambda text: json.dumps(json.loads(text) | {"more": 1}),
    ],
)
def test_a_record_that_is_not_as_it_was_written_is_computed_again(tmp_path, source, spoil):
    path = tmp_path / "record.json"
    load(path, source)
    whole = path.read_text()
    path.write_text(spoil(whole))
    assert load(path, source) == source.record
    assert source.count == 2
    assert path.read_text() == whole


def test_a_record_under_the_name_of_another_is_computed_again(tmp_path, source):
    load(tmp_path / "one.json", source)
    (tmp_path / "one.json").rename(tmp_path / "other.json")
    load(tmp_path / "other.json", source)
    assert source.count == 2


def test_a_record_that_is_of_no_use_is_computed_again(tmp_path, source):
    load_or_compute(tmp_path / "record.json", lambda _: True, Source({"value": 99}))
    assert load(tmp_path / "record.json", source) == source.record


def test_a_record_that_is_not_final_is_not_cached(tmp_path):
    source = Source({"value": 3, "final": False})
    assert load(tmp_path / "record.json", source) == {"value": 3}
    assert not list(tmp_path.iterdir())
