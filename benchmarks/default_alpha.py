"""Which penalty suits standardised data: held-out TPR at FPR 5 % over penalties, sets and random splits.

The table behind the default of `alpha`. Needs TOPRANK_DATA.
"""

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from toprank import PatMatNP, TauFPL
from toprank.datasets import load_task, split_two_thirds
from toprank.metrics import tpr_at_fpr

SETS = (
    "spambase",
    "ionosphere",
    "german",
    "mammography",
    "satimage",
    "letter",
    "yeast",
    "oil_spill",
    "winequality-white",
)
ALPHAS = 10.0 ** np.arange(-5, 2)
SPLITS = 5


def curve(make, name):
    """Mean held-out TPR for each penalty."""
    data = load_task(name)
    values = np.zeros((SPLITS, len(ALPHAS)))
    for seed in range(SPLITS):
        train, test = split_two_thirds(data.y, stratify=True, random_state=seed)
        scaler = StandardScaler().fit(data.X[train])
        for j, alpha in enumerate(ALPHAS):
            model = make(alpha, data.y[train].sum()).fit(scaler.transform(data.X[train]), data.y[train])
            score = model.decision_function(scaler.transform(data.X[test]))
            values[seed, j] = tpr_at_fpr(data.y[test], score, max_fpr=0.05)
    return values.mean(axis=0)


def main():
    """Print one table a method; the last line is the mean loss against the best penalty of each set."""
    warnings.simplefilter("ignore")
    for title, make in {
        "TauFPL(tau=0.05)": lambda alpha, m: TauFPL(tau=0.05, alpha=alpha),
        "PatMatNP(tau=0.05, beta=0.1)": lambda alpha, m: PatMatNP(tau=0.05, alpha=alpha),
        "PatMatNP(tau=0.05, beta=1)": lambda alpha, m: PatMatNP(tau=0.05, beta=1.0, alpha=alpha),
        "logistic regression": lambda alpha, m: LogisticRegression(C=1 / (alpha * m), max_iter=2000),
    }.items():
        print(f"{title:20}" + "".join(f"{alpha:8.0e}" for alpha in ALPHAS))
        rows = {name: curve(make, name) for name in SETS}
        for name, row in rows.items():
            print(f"{name:20}" + "".join(f"{value:8.3f}" for value in row), flush=True)
        lost = np.mean([row.max() - row for row in rows.values()], axis=0)
        print(f"{'mean loss':20}" + "".join(f"{value:8.3f}" for value in lost), flush=True)


if __name__ == "__main__":
    main()
