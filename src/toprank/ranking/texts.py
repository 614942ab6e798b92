"""What the docstrings of metrics and displays say about the rows of a ranked list."""

_WEIGHT = """sample_weight : array-like of shape (n,), optional
    Weights; 2 equals a repeated row and 0 a removed one."""

ROWS_TEXTS = {
    "rows": """y_true : array-like of shape (n,)
    Labels of two classes.
y_score : array-like of shape (n,)
    Scores, larger for more likely positives.""",
    "sample_weight": _WEIGHT,
    "weights": f"""{_WEIGHT}
pos_label : label, optional
    The positive class; by default 1, for labels {{0, 1}} or {{-1, 1}}.""",
}
