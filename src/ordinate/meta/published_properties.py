"""Published properties of metrics: Table 2 of Amigó et al. (2020)."""

from typing import Any, Final

PUBLISHED_COLUMNS: Final = ("invariance", "monotonicity", "imbalance")
YES, NO = "✓", "-"

# In the order of the paper; one line for each row of its table.
TABLE_2: Final[dict[tuple[str, ...], str]] = {
    ("accuracy",): "✓--",
    ("accuracy_within",): "✓--",
    ("macro_accuracy", "cohen_kappa"): "✓-✓",
    ("f1_macro",): "✓-✓",
    ("mae", "mse"): "-✓-",
    ("macro_mae", "macro_mse"): "-✓✓",
    ("weighted_kappa", "linear_kappa", "quadratic_kappa"): "-✓✓",
    ("rennie_srebro",): "-✓-",
    ("cosine",): "-✓-",
    ("pearson",): "---",
    ("kendall_tau_b", "spearman"): "✓-✓",
    ("kendall_tau_a",): "✓--",
    ("reliability", "sensitivity", "reliability_sensitivity_f"): "✓-✓",
    ("mutual_information", "purity", "inverse_purity"): "✓-✓",
    ("oci",): "✓--",
    ("cem_nom",): "✓-✓",
    ("cem_int",): "-✓✓",
    ("cem_ord",): "✓✓✓",
}

MARKS: Final[dict[str, dict[str, str]]] = {
    name: dict(zip(PUBLISHED_COLUMNS, marks, strict=True))
    for row, marks in TABLE_2.items()
    for name in row
}


def find_mark(metric: str, law: str) -> str | None:
    """Return the published mark of a metric, or None where the paper is silent."""
    return MARKS.get(metric, {}).get(law)


def agrees_with_paper(cell: dict[str, Any]) -> bool | None:
    """Tell whether a verdict is what the paper says; None where one of them says nothing."""
    if cell["paper"] is None or cell["verdict"] == "undefined":
        return None
    return (cell["verdict"] == "not_violated") == (cell["paper"] == YES)
