"""Learn one user's ranking of movies from the ratings of other users.

The protocol of section 7 of the RankNCG paper: the movies that a user has rated are the rows, 70 % of them for
training; the ratings of d other users are the features; the levels are the user's own one to five stars. A missing
rating is drawn from a normal distribution with the mean and the variance of the ratings that the movie has from those d
users (of all their ratings, if there are fewer than two). The paper does not say who the d users are; here they are
those with most ratings. The penalty is chosen by three folds of the training part.

Run: python examples/movielens.py [figure.png] [users]

It reads MovieLens from the folder that TOPRANK_DATA names.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.model_selection import KFold

from toprank.datasets import load
from toprank.pairwise import WMWRanker

ALPHAS = (1e-2, 1e-1, 1.0, 10.0)
# Table 5 of the paper: number of users as features, WMW of RankNCG and of RankBoost.
PUBLISHED = {
    50: (0.693, 0.672),
    100: (0.707, 0.679),
    200: (0.722, 0.685),
    400: (0.720, 0.685),
    800: (0.721, 0.673),
    1600: (0.719, 0.682),
}


def ratings_table(name):
    """Users × movies, 0 where there is no rating."""
    data = load(name)
    users, user = np.unique(data.X[:, 0], return_inverse=True)
    movies, movie = np.unique(data.X[:, 1], return_inverse=True)
    table = np.zeros((len(users), len(movies)), dtype=np.float32)
    table[user, movie] = data.y
    return table


def features(table, others, movies, rng):
    """The ratings of some movies by other users, movies × users; missing ones are drawn at random."""
    X = table[np.ix_(others, movies)].T.astype(np.float64)
    known = X > 0
    count = known.sum(axis=1)
    overall, spread = X[known].mean(), X[known].std()
    mean = np.where(count > 1, X.sum(axis=1) / np.maximum(count, 1), overall)
    variance = np.where(known, (X - mean[:, None]) ** 2, 0).sum(axis=1) / np.maximum(count - 1, 1)
    deviation = np.where(count > 1, np.sqrt(variance), spread)
    drawn = mean[:, None] + deviation[:, None] * rng.normal(size=X.shape)
    return np.where(known, X, drawn) - overall


def choose_alpha(X, y):
    """The penalty with the best WMW in three folds."""
    scores = dict.fromkeys(ALPHAS, 0.0)
    for train, test in KFold(3, shuffle=True, random_state=0).split(X):
        if min(len(np.unique(y[train])), len(np.unique(y[test]))) > 1:
            for alpha in ALPHAS:
                scores[alpha] += WMWRanker(alpha=alpha, tol=1e-4).fit(X[train], y[train]).score(X[test], y[test])
    return max(scores, key=scores.get)


def evaluate(table, user, order, n_features, rng):
    """WMW on the test movies of one user and the seconds of the final fit."""
    movies = rng.permutation(np.flatnonzero(table[user]))
    others = order[order != user][:n_features]
    X, y = features(table, others, movies, rng), table[user, movies].astype(int)
    n_train = round(0.7 * len(movies))
    alpha = choose_alpha(X[:n_train], y[:n_train])
    start = time.perf_counter()
    model = WMWRanker(alpha=alpha, tol=1e-4).fit(X[:n_train], y[:n_train])
    seconds = time.perf_counter() - start
    return model.score(X[n_train:], y[n_train:]), seconds


def draw(sizes, wmw, errors, path):
    """WMW by the number of users, beside the published values."""
    figure = Figure(figsize=(7, 4.3), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.errorbar(sizes, wmw, yerr=errors, marker="o", capsize=3, color="#0072b2", label="WMWRanker")
    for column, (name, style) in enumerate([("RankNCG, published", "s--"), ("RankBoost, published", "^:")]):
        values = [row[column] for row in PUBLISHED.values()]
        axes.plot(list(PUBLISHED), values, style, color=["#d55e00", "#777777"][column], label=name)
    axes.set(xscale="log", xlabel="users whose ratings are the features", ylabel="WMW on the user's test movies")
    axes.set_xticks(list(PUBLISHED), [str(size) for size in PUBLISHED])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right")
    axes.set_title("Ranking the movies of a user by the ratings of others")
    figure.savefig(path, dpi=90)


def main(path, n_users=100, sizes=tuple(PUBLISHED), name="movielens_1m"):
    """Average over users, print the table, draw; returns the mean WMW by number of features."""
    if not os.environ.get("TOPRANK_DATA"):
        print("MovieLens is not part of toprank: set TOPRANK_DATA to the folder that holds it. Nothing was done.")
        return {}
    table = ratings_table(name)
    order = np.argsort(-np.count_nonzero(table, axis=1), kind="stable")
    able = [user for user, row in enumerate(table) if np.count_nonzero(row) >= 50 and len(np.unique(row[row > 0])) > 2]
    chosen = np.random.default_rng(0).choice(able, n_users, replace=False)
    print(f"{'users d':>8} {'WMW':>6} {'± of users':>10} {'published':>9} {'seconds':>8}")
    means, errors = [], []
    for size in sizes:
        results = np.array([evaluate(table, user, order, size, np.random.default_rng(user)) for user in chosen])
        wmw, seconds = results.mean(axis=0)
        spread = results[:, 0].std()
        means.append(wmw)
        errors.append(spread / np.sqrt(n_users))
        print(f"{size:8} {wmw:6.3f} {spread:10.3f} {PUBLISHED.get(size, (np.nan,))[0]:9.3f} {seconds:8.4f}", flush=True)
    draw(sizes, means, errors, path)
    print(f"figure: {path}")
    return dict(zip(sizes, means, strict=True))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(Path(arguments[0] if arguments else "movielens.png"), int(arguments[1]) if len(arguments) > 1 else 100)
