"""Published figures: the left half of Table 3 of Amigó et al. (2020).

Columns say which systems take part: all of them, or all but those of one type of mistakes.
"""

REFERENCE = "amigo2020"
TABLE_3_COLUMNS = ("all", "rand", "prox", "maj", "tdisp", "odisp")
TABLE_3 = {
    "accuracy": (0.81, 0.77, 0.78, 0.78, 0.94, 0.77),
    "kendall_tau_a": (0.84, 0.81, 0.82, 0.82, 0.93, 0.82),
    "mutual_information": (0.84, 0.82, 0.84, 0.82, 0.93, 0.82),
    "f1_macro": (0.83, 0.80, 0.82, 0.81, 0.93, 0.81),
    "macro_accuracy": (0.83, 0.81, 0.82, 0.79, 0.91, 0.81),
    "cohen_kappa": (0.81, 0.78, 0.79, 0.77, 0.94, 0.77),
    "accuracy_within": (0.79, 0.75, 0.77, 0.80, 0.85, 0.79),
    "mae": (0.84, 0.82, 0.83, 0.87, 0.86, 0.84),
    "macro_mae": (0.74, 0.73, 0.74, 0.80, 0.76, 0.73),
    "mse": (0.89, 0.87, 0.87, 0.88, 0.93, 0.88),
    "macro_mse": (0.83, 0.80, 0.80, 0.82, 0.90, 0.83),
    "pearson": (0.77, 0.79, 0.74, 0.73, 0.83, 0.79),
    "spearman": (0.72, 0.67, 0.69, 0.77, 0.76, 0.70),
    "cem_ord": (0.91, 0.89, 0.90, 0.90, 0.95, 0.89),
    "cem_ord_flat": (0.87, 0.84, 0.86, 0.88, 0.89, 0.87),
}
EXCHANGED_ROWS = ("macro_mae", "mse")  # rows that look exchanged in print
