"""Dry runs of either task: what would be done, and nothing written."""

import pytest
from search_cases import one_quick_task, read_untimed_files

from ordinate.render import render


@one_quick_task
@pytest.mark.parametrize("nested", [False, True])
def test_a_plan_counts_at_least_the_fits_of_the_search(case, root, monkeypatch, nested):
    settings = case.make_settings(nested=nested, trials=2)
    plan = case.plan(root, settings)
    made, fit_class = [], case.get_fit_class()
    run = fit_class.run

    def counted(self, kept):
        made.append(self)
        return run(self, kept)

    monkeypatch.setattr(fit_class, "run", counted)
    case.tune(root, settings)
    assert len(made) <= sum(plan.fits.values())
    assert ("nested" in plan.fits) == nested


def test_a_plan_writes_nothing(case, root):
    before = read_untimed_files(root)
    case.plan(root, case.make_settings())
    assert read_untimed_files(root) == before


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown", "latex"])
def test_every_form_is_written(case, root, form):
    plan = case.plan(root, case.make_settings(jobs=2))
    assert render(plan, form)
    if form == "text":
        said = " ".join(render(plan, form).split())
        assert f"At most {sum(plan.fits.values())} fits" in said
        assert "Nothing was written." in said
        assert f"Models: {', '.join(plan.settings.models)}, 6 trials in all" in said
        assert "2 processes" in said
        assert "Test data: test." in said
