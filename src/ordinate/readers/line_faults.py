"""SQL that finds of every line of a campaign of which kind it is; a good line is of none."""

from ordinate.readers.campaign_layout import ColumnLayout
from ordinate.readers.duckdb_connection import quote_literal
from ordinate.readers.irregular_lines import IrregularityKind
from ordinate.readers.text_lines import INVALID_BYTE_MARK
from ordinate.scale.encoding import OFF_SCALE_CODE


def build_predictions_sql(layout: ColumnLayout) -> str:
    """Return SQL for the test case, the id and the value of each line of `cut`."""
    case = "NULL" if layout.test_case is None else f"parts[{layout.test_case}]"
    kind = _build_first_kind_sql(
        {
            IrregularityKind.ENCODING: f"contains(text, {quote_literal(INVALID_BYTE_MARK)})",
            IrregularityKind.QUOTES: "parts IS NULL",
            IrregularityKind.COLUMNS: f"len(parts) <> {layout.width}",
            IrregularityKind.TEST_CASE: f"{case} = ''",
            IrregularityKind.ID: f"parts[{layout.id}] = ''",
        }
    )
    return (
        f"SELECT line, text, {kind} AS kind, CAST({case} AS VARCHAR) AS test_case, "
        f"parts[{layout.id}] AS id, parts[{layout.value}] AS value FROM cut"
    )


def build_line_check_sql(size: int, *, by_test_case: bool) -> str:
    """Return SQL for the place in gold, the level and the kind of each line of `answers`.

    The first good line of an id counts; those after it repeat it.
    """
    turn = (
        "row_number() OVER again AS turn, first_value(level) OVER again AS first "
        f"FROM ({_build_single_line_check_sql(size, by_test_case=by_test_case)}) "
        "WINDOW again AS (PARTITION BY place, kind IS NULL ORDER BY line)"
    )
    again = _build_first_kind_sql(
        {
            IrregularityKind.REPEATED: "turn > 1 AND level = first",
            IrregularityKind.CONTRADICTING: "turn > 1",
        }
    )
    return (
        f"SELECT line, text, place, level, CASE WHEN kind IS NULL THEN {again} ELSE kind END "
        f"AS kind FROM (SELECT *, {turn})"
    )


def _build_single_line_check_sql(size: int, *, by_test_case: bool) -> str:
    """Return SQL for what each line is, whatever the others are.

    The join has nothing but equalities: older engines compare all pairs of lines for any other.
    """
    same = " AND known.test_case = answers.test_case" if by_test_case else ""
    kind = _build_first_kind_sql(
        {
            IrregularityKind.UNKNOWN: "place IS NULL",
            IrregularityKind.VALUE: f"level IS NULL OR level = {size}",
            IrregularityKind.OFF_SCALE: f"level = {OFF_SCALE_CODE}",
        }
    )
    return (
        f"SELECT line, text, place, level, CASE WHEN kind IS NULL THEN {kind} ELSE kind END AS "
        "kind FROM answers LEFT JOIN levels USING (value) "
        f"LEFT JOIN known ON known.id = CASE WHEN kind IS NULL THEN answers.id END{same}"
    )


def _build_first_kind_sql(kinds: dict[IrregularityKind, str]) -> str:
    """Return SQL for the first kind whose condition holds, or NULL."""
    cases = [f"WHEN {condition} THEN {quote_literal(kind)}" for kind, condition in kinds.items()]
    return f"CASE {' '.join(cases)} END"
