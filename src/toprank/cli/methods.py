"""Methods by name, and the models made of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import toprank
from toprank.cli.options import of_method, of_threshold
from toprank.cli.output import told
from toprank.exceptions import InputError


def _methods_in(home: str) -> list[str]:
    return [name for name, place in toprank.HOMES.items() if place.startswith(home)]


PEER = "LogisticRegression"
METHODS = [*_methods_in("trees.forest"), *_methods_in("estimators.top"), PEER]
"""Methods that learn from all rows at once."""
SHORT_NAMES = {"forest": "TopForest", "linear": "PatMatNP"}
NAMES = [*SHORT_NAMES, *METHODS]
"""What a user may call a method."""
DEFAULT = "PatMatNP"
"""The method of ``toprank fit`` where none is named."""
FOREST_HINT = "a forest often finds more at the top, in more time: try --method forest"
"""What ``toprank fit`` says after the fit of the method that was not asked for."""
COMPARED = ["PatMatNP", "TauFPL", PEER]
"""The methods of ``toprank compare`` where none is named."""
ONLINE_METHODS = _methods_in("online.")
"""Methods that learn row by row."""
Tau = Annotated[
    float | None,
    of_method(
        help="Share of the list that counts as its top, strictly between 0 and 1: of the negatives for PatMatNP, "
        "TauFPL and GrillNP, of all rows for PatMat, TopMeanK and Grill. By default what --max-fpr, --share or "
        "--budget asks for."
    ),
]
TopNegatives = Annotated[float | None, of_method("--k", help="Number of negatives at the top, for TopPushK.")]
Alpha = Annotated[float | None, of_method(help="Penalty; larger is smoother.")]
Kernel = Annotated[str | None, of_method(metavar="KERNEL", help="linear, rbf, poly or sigmoid.")]
Gamma = Annotated[
    float | None,
    of_method(
        min=0, help="Of the kernels rbf, poly and sigmoid: smaller is smoother. By default 1 / (features · variance)."
    ),
]
Surrogate = Annotated[
    str | None, of_method(metavar="LOSS", help="Loss, such as hinge; the error for an unknown one names all.")
]
MaxFpr = Annotated[
    float | None, of_threshold(help="Set the threshold so that at most this share of the negatives is above it.")
]
Confidence = Annotated[float, of_threshold(help="Probability with which --max-fpr holds.")]


Share = Annotated[
    float | None, of_threshold(help="Set the threshold so that at most this share of all rows is expected above it.")
]
Budget = Annotated[
    float | None,
    of_threshold(metavar="ALERTS", help="Set the threshold so that so many alerts are expected --per day."),
]


def alert_rule(time: str | None = None, in_order: bool = False, **given: Any) -> Any:
    """The rule for the threshold, refused before the data are read if it is none."""
    from toprank.files.alert_rule import AlertRule

    try:
        rule = AlertRule(**given)
        rule.require_times(time, in_order)
        return rule
    except InputError as error:
        raise typer.BadParameter(told(error)) from None


def full_name(method: str) -> str:
    """The name of the class of a method."""
    return SHORT_NAMES.get(method, method)


def ranker(
    method: str, *, seed: int, jobs: int = 1, max_fpr: float | None = None, share: float | None = None, **given: Any
) -> Any:
    """An estimator of scores by its name; options that it does not have are refused, and those that are None left out.

    Where `tau` is not given it is `max_fpr`, for the methods that look at the negatives, or `share`.
    """
    import sklearn.linear_model

    method = full_name(method)

    if method == PEER:
        model: Any = sklearn.linear_model.LogisticRegression(max_iter=1000)
    else:
        model = getattr(toprank, method)()
    known = model.get_params()
    for name, value in given.items():
        if value is None:
            continue
        if name not in known:
            having = [one for one in METHODS if one != PEER and name in getattr(toprank, one)().get_params()]
            raise typer.BadParameter(f"{method} has no --{name}; leave it out, or use {' or '.join(having[:3])}")
        model.set_params(**{name: value})
    if given.get("tau") is None and max_fpr is not None and "tau" in known and model.over == "negatives":
        model.set_params(tau=max_fpr)
    if given.get("tau") is None and share is not None and "tau" in known:
        model.set_params(tau=share)
    if method in _methods_in("trees.forest"):
        model.set_params(n_jobs=jobs)
    return model.set_params(random_state=seed)


def has_penalty_to_search(method: str) -> bool:
    """Whether `--search` is for a method: the peer keeps its penalty, and a forest chooses its own."""
    return full_name(method) in _methods_in("estimators.top")


def check_around(method: str, *, search: bool) -> None:
    """Refuse what `complete` cannot do, before the data are read."""
    if search and full_name(method) == PEER:
        raise typer.BadParameter(f"--search has no penalty to choose for {method}; leave it out, or use another method")
    if search and not has_penalty_to_search(method):
        raise typer.BadParameter(f"{method} chooses its penalty itself; leave --search out")
