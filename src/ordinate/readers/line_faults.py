"""SQL that finds of every line of a campaign of which kind it is; a good line is of none."""

from ordinate.readers.campaign_layout import Layout
from ordinate.readers.files import literal
from ordinate.readers.irregular_lines import Kind
from ordinate.readers.text_lines import BROKEN
from ordinate.scale.encoding import OFF


def answers_of(layout: Layout) -> str:
    """Return SQL for the test case, the id and the value of each line of `cut`."""
    case = "NULL" if layout.test_case is None else f"parts[{layout.test_case}]"
    kind = _first_of(
        {
            Kind.ENCODING: f"contains(text, {literal(BROKEN)})",
            Kind.QUOTES: "parts IS NULL",
            Kind.COLUMNS: f"len(parts) <> {layout.width}",
            Kind.TEST_CASE: f"{case} = ''",
            Kind.ID: f"parts[{layout.id}] = ''",
        }
    )
    return (
        f"SELECT line, text, {kind} AS kind, CAST({case} AS VARCHAR) AS test_case, "
        f"parts[{layout.id}] AS id, parts[{layout.value}] AS value FROM cut"
    )


def checked_by(size: int, *, by_test_case: bool) -> str:
    """Return SQL for the place in gold, the level and the kind of each line of `answers`.

    The first good line of an id counts; those after it repeat it.
    """
    turn = (
        "row_number() OVER again AS turn, first_value(level) OVER again AS first "
        f"FROM ({_alone(size, by_test_case=by_test_case)}) "
        "WINDOW again AS (PARTITION BY place, kind IS NULL ORDER BY line)"
    )
    again = _first_of({Kind.REPEATED: "turn > 1 AND level = first", Kind.CONTRADICTING: "turn > 1"})
    return (
        f"SELECT line, text, place, level, CASE WHEN kind IS NULL THEN {again} ELSE kind END "
        f"AS kind FROM (SELECT *, {turn})"
    )


def _alone(size: int, *, by_test_case: bool) -> str:
    """Return SQL for what each line is, whatever the others are.

    The join has nothing but equalities: older engines compare all pairs of lines for any other.
    """
    same = " AND known.test_case = answers.test_case" if by_test_case else ""
    kind = _first_of(
        {
            Kind.UNKNOWN: "place IS NULL",
            Kind.VALUE: f"level IS NULL OR level = {size}",
            Kind.OFF_SCALE: f"level = {OFF}",
        }
    )
    return (
        f"SELECT line, text, place, level, CASE WHEN kind IS NULL THEN {kind} ELSE kind END AS "
        "kind FROM answers LEFT JOIN levels USING (value) "
        f"LEFT JOIN known ON known.id = CASE WHEN kind IS NULL THEN answers.id END{same}"
    )


def _first_of(kinds: dict[Kind, str]) -> str:
    """Return SQL for the first kind whose condition holds, or NULL."""
    cases = [f"WHEN {condition} THEN {literal(kind)}" for kind, condition in kinds.items()]
    return f"CASE {' '.join(cases)} END"
