"""Which metric to report: the questions, and the table of what follows from the answers.

Everything here is data. A row holds when every answer that it names is the one given, or among
those given; of the rows of a role the first that holds counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LevelMeaning = Literal["names", "order", "numbers"]
TieTreatment = Literal["not_ranked", "ignore", "count"]
ReaderKnowledge = Literal["shares", "classification", "agreement", "correlation"]
Role = Literal["first", "reader", "ranking"]
Answers = Mapping[str, Any]


@dataclass(frozen=True)
class Question:
    """What is asked, and what each answer means; some questions need levels with an order."""

    name: str
    text: str
    meanings: Mapping[Any, str]
    of_ordered_levels: bool = False


@dataclass(frozen=True)
class MetricRule:
    """A metric for a role, by the answers, and the reason."""

    role: Role
    when: Answers
    metric: str
    reason: str


@dataclass(frozen=True)
class PropertyRule:
    """A formal property that the first metric has to have, by the answers, and the reason."""

    when: Answers
    property_name: str
    reason: str


@dataclass(frozen=True)
class ScaleRule:
    """What the methods section says of the scale, by the answers."""

    when: Answers
    clause: str


QUESTIONS = {
    question.name: question
    for question in (
        Question(
            "levels",
            "What do the levels mean?",
            {
                "names": "categories without an order",
                "order": "an order from lowest to highest, as CEFR levels, grades and stages have",
                "numbers": "quantities whose differences mean something, such as points or degrees",
            },
        ),
        Question(
            "equal_distances",
            "Are the distances between neighbouring levels equal?",
            {
                True: "every step is equally large",
                False: "steps differ, or nobody can say how large they are",
            },
            of_ordered_levels=True,
        ),
        Question(
            "rare_levels",
            "Do rare levels matter as much as common ones?",
            {True: "each level counts the same", False: "each item counts the same"},
        ),
        Question(
            "ties",
            "Are items ranked by their levels, and does the order within ties matter?",
            {
                "not_ranked": "items are not ranked",
                "ignore": "ranked; items that are tied in gold may come in any order",
                "count": "ranked; items that are tied in gold have to stay tied",
            },
            of_ordered_levels=True,
        ),
        Question(
            "reader",
            "What do your readers know?",
            {
                "shares": "shares of right answers",
                "classification": "precision, recall and F1",
                "agreement": "kappas and other agreement between raters",
                "correlation": "correlation coefficients",
            },
        ),
    )
}

NAMES = {"levels": "names"}
ORDER = {"levels": "order", "equal_distances": False}
EQUAL = {"levels": "order", "equal_distances": True}
NUMBERS = {"levels": "numbers"}
ORDERED = {"levels": ("order", "numbers")}
RARE, COMMON = {"rare_levels": True}, {"rare_levels": False}

# By scale type, as measurement theory has it: a metric may use what the levels mean, and no more.
METRIC_RULES = (
    # --- the metric to report first --------------------------------------------------------------
    MetricRule(
        "first",
        NAMES | RARE,
        "macro_accuracy",
        "Between names an answer is right or wrong. The mean over levels gives a rare level as "
        "much say as a common one.",
    ),
    MetricRule(
        "first",
        NAMES | COMMON,
        "accuracy",
        "Between names an answer is right or wrong, and the share of right ones gives each item "
        "the same say.",
    ),
    MetricRule(
        "first",
        ORDER | RARE,
        "cem_ord",
        "It uses the order of the levels and no distance: an error costs more the more gold items "
        "it crosses, and a right answer is worth more on a rare level.",
    ),
    MetricRule(
        "first",
        ORDER | COMMON,
        "cem_ord_flat",
        "It uses the order of the levels and no distance: an error costs the share of gold items "
        "between the two levels, so a level counts by its items. With the logarithm, as cem_ord, "
        "its authors found it to capture more on average.",
    ),
    MetricRule(
        "first",
        EQUAL | RARE,
        "macro_mae",
        "Equal steps can be counted and averaged. The mean over gold levels gives a rare level as "
        "much say as a common one.",
    ),
    MetricRule(
        "first",
        EQUAL | COMMON,
        "mae",
        "Equal steps can be counted and averaged, and a mean over items gives each item the same "
        "say.",
    ),
    MetricRule(
        "first",
        NUMBERS | RARE,
        "macro_mae",
        "Differences of numbers can be averaged, by the positions of the scale. The mean over gold "
        "levels gives a rare level as much say as a common one.",
    ),
    MetricRule(
        "first",
        NUMBERS | COMMON,
        "mae",
        "Differences of numbers can be averaged, by the positions of the scale, and a mean over "
        "items gives each item the same say.",
    ),
    # --- beside it, one that readers know --------------------------------------------------------
    MetricRule(
        "reader",
        NAMES | RARE | {"reader": "shares"},
        "accuracy",
        "The plain share of right answers, which common levels dominate: its distance from the "
        "mean over levels says how much.",
    ),
    MetricRule(
        "reader",
        NAMES | COMMON | {"reader": "shares"},
        "macro_accuracy",
        "The share of right answers of a level, in the mean over levels: it falls where a rare "
        "level is never found.",
    ),
    MetricRule(
        "reader",
        ORDERED | {"reader": "shares"},
        "accuracy_within",
        "A share that needs no explanation: how many answers are right or one level off. It counts "
        "levels, as if each were one step, and does not say how far off the others are.",
    ),
    MetricRule(
        "reader",
        RARE | {"reader": "classification"},
        "f1_macro",
        "The mean F1 of the levels, as in other classification. It takes the levels for names, so "
        "it does not see how far off an error is.",
    ),
    MetricRule(
        "reader",
        COMMON | {"reader": "classification"},
        "f1_weighted",
        "F1 as in other classification, by the items of each level. It takes the levels for names, "
        "so it does not see how far off an error is.",
    ),
    MetricRule(
        "reader",
        NAMES | {"reader": "agreement"},
        "cohen_kappa",
        "Agreement beyond chance, with every error alike, as names have it.",
    ),
    MetricRule(
        "reader",
        ORDER | {"reader": "agreement"},
        "krippendorff_alpha",
        "Agreement beyond chance with distances made of the order alone, where quadratic kappa "
        "takes steps for equal.",
    ),
    MetricRule(
        "reader",
        ORDERED | {"reader": "agreement"},
        "quadratic_kappa",
        "Agreement beyond chance with squared distances, which readers compare with that of two "
        "raters. It depends on how much gold varies, and a step toward gold may lower it.",
    ),
    MetricRule(
        "reader",
        NAMES | {"reader": "correlation"},
        "mcc",
        "A correlation coefficient of categories: 0 for what ignores gold, 1 for what equals it.",
    ),
    MetricRule(
        "reader",
        ORDER | {"reader": "correlation"},
        "spearman",
        "A correlation of ranks, which uses the order alone. It does not see predictions that are "
        "all too high or all too low.",
    ),
    MetricRule(
        "reader",
        ORDERED | {"reader": "correlation"},
        "ccc",
        "It reads like Pearson's correlation, and falls where predictions are shifted or "
        "stretched, which that does not see.",
    ),
    # --- and one for the order of the items, where they are ranked -------------------------------
    MetricRule(
        "ranking",
        ORDERED | {"ties": "ignore"},
        "somers_d",
        "It counts the pairs of items that gold orders, and leaves out those that are tied there.",
    ),
    MetricRule(
        "ranking",
        ORDERED | {"ties": "count"},
        "kendall_tau_b",
        "It reaches 1 only where the same pairs are tied on both sides.",
    ),
)

# The properties of Amigó et al. (2020) that the answers ask for.
PROPERTY_RULES = (
    PropertyRule(
        NAMES, "invariance", "Names have no distances, so putting them elsewhere changes nothing."
    ),
    PropertyRule(
        ORDER,
        "invariance",
        "Nobody can say how far levels are apart, so moving them apart has to change nothing.",
    ),
    PropertyRule(
        ORDER,
        "unused_level",
        "How finely the scale is divided is a choice, so a level that does not occur has to change "
        "nothing.",
    ),
    PropertyRule(ORDERED, "monotonicity", "A prediction that is nearer to gold has to be better."),
    PropertyRule(
        RARE, "imbalance", "An error in a rare level has to cost more than one in a common level."
    ),
)

SCALE_RULES = (
    ScaleRule(NAMES, "whose levels are taken as names"),
    ScaleRule(ORDER, "of which only the order is taken as known"),
    ScaleRule(EQUAL, "whose steps are taken as equal"),
    ScaleRule(NUMBERS | {"equal_distances": True}, "whose steps are equal"),
    ScaleRule(NUMBERS | {"equal_distances": False}, "whose levels stand at their positions"),
)


def fits_answers(when: Answers, answers: Answers) -> bool:
    """Tell whether the answers are those of a row.

    >>> fits_answers({"levels": ("order", "numbers")}, {"levels": "order", "reader": "shares"})
    True
    """
    return all(
        answers.get(name) in (wanted if isinstance(wanted, tuple) else (wanted,))
        for name, wanted in when.items()
    )


def list_open_questions(answers: Answers) -> list[Question]:
    """Return the questions that need an answer and have none: names have neither gaps nor ties."""
    return [
        question
        for name, question in QUESTIONS.items()
        if answers.get(name) is None
        and not (question.of_ordered_levels and fits_answers(NAMES, answers))
    ]


def describe_question(name: str) -> str:
    """Return a question and its answers in one line, as help shows it."""
    question = QUESTIONS[name]
    meanings = "; ".join(
        f"{format_answer(answer)}: {meaning}" for answer, meaning in question.meanings.items()
    )
    return f"{question.text} {meanings}"


def format_answer(answer: Any) -> str:
    """Return an answer as people write it.

    >>> format_answer(True), format_answer("not_ranked")
    ('yes', 'not-ranked')
    """
    return {True: "yes", False: "no"}.get(answer, str(answer).replace("_", "-"))
