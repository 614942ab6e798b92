"""RankNCG, Tables 4 and 5: the movies of one user at a time; a trial is a user."""

import time
from functools import lru_cache

import numpy as np
from benchmarks.tables.design import Cell, Experiment, Measure, Published, Table
from benchmarks.tables.rankncg_folds import FAST, rank_ncg
from examples import movielens

from toprank.baselines import RankBoost


@lru_cache(maxsize=1)
def ratings():
    """The table of ratings, users by their number of ratings, and the users that are drawn."""
    table = movielens.ratings_table("movielens_1m")
    order = np.argsort(-np.count_nonzero(table, axis=1), kind="stable")
    able = [user for user, row in enumerate(table) if np.count_nonzero(row) >= 50 and len(np.unique(row[row > 0])) > 2]
    return table, order, np.random.default_rng(0).choice(able, 100, replace=False)


def made_up():
    """A small table of ratings for a test."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 6, size=(8, 60)).astype(np.float32)
    return table, np.arange(8), np.arange(8)


def of_user(cell):
    """WMW on the test movies of a user and the processor seconds of the last fit."""
    table, order, users = made_up() if cell.set == "d = 5" else ratings()
    user, size = users[cell.trial], int(cell.set.split(" = ")[1])
    rng = np.random.default_rng(user)
    movies = rng.permutation(np.flatnonzero(table[user]))
    others = order[order != user][:size]
    X, y = movielens.features(table, others, movies, rng), table[user, movies].astype(int)
    cut = round(0.7 * len(movies))
    if cell.method == "RankBoost":
        model = RankBoost(n_estimators=100)
    else:
        model = rank_ncg(movielens.choose_alpha(X[:cut], y[:cut]), summation="erfc", eps=1e-6)
    start = time.process_time()
    model.fit(X[:cut], y[:cut])
    return {"seconds": time.process_time() - start, "wmw": float(model.score(X[cut:], y[cut:]))}


USERS = Experiment(
    "rankncg-movielens",
    of_user,
    lambda name: (FAST, "RankBoost"),
    tuple(f"d = {d}" for d in (50, 100, 200, 400, 800, 1600)),
    trials=100,
    tiny=Cell("d = 5", FAST, 0),
)
USER_VALUES = {
    50: (0.48, 6.68, (0.693, 0.054), (0.672, 0.056)),
    100: (0.44, 12.67, (0.707, 0.049), (0.679, 0.050)),
    200: (0.42, 27.53, (0.722, 0.053), (0.685, 0.057)),
    400: (0.41, 68.08, (0.720, 0.054), (0.685, 0.051)),
    800: (0.45, 193.18, (0.721, 0.050), (0.673, 0.058)),
    1600: (0.51, 613.54, (0.719, 0.053), (0.682, 0.058)),
}
OF_USERS = (
    "MovieLens 1M; a trial is a user. The d users whose ratings are the features are those with most ratings, as the "
    "paper does not say. RankBoost has 100 rounds."
)
TABLE_4 = Table(
    "4",
    "MovieLens: training time by the number of features d, as a ratio to that of RankNCG fast",
    USERS,
    (Measure("seconds", "seconds", None, ".3g", ratio_to=FAST),),
    {
        (f"d = {d}", method, "seconds"): Published(number)
        for d, numbers in USER_VALUES.items()
        for method, number in zip((FAST, "RankBoost"), numbers[:2], strict=True)
    },
    published_trials=100,
    notes=(OF_USERS,),
)
TABLE_5 = Table(
    "5",
    "MovieLens: WMW on a user's test movies by the number of features d",
    USERS,
    (Measure("wmw", "WMW"),),
    {
        (f"d = {d}", method, "wmw"): Published(*pair)
        for d, numbers in USER_VALUES.items()
        for method, pair in zip((FAST, "RankBoost"), numbers[2:], strict=True)
    },
    published_trials=100,
    notes=(OF_USERS,),
)
