"""Objectives of the top inside LightGBM against its log loss: share of positives found at low false positive rates.

    python benchmarks/bench_boosting.py [--sets mammography,satimage] [--splits 5]

The same trees, learning rate and number of rounds for all; nothing is tuned. Training rows: three fifths, at most
5,000. Needs lightgbm, and the data folder that TOPRANK_DATA names. One line a set and objective: the share at a false
positive rate of 1 %, its mean over rates from 0.2 to 5 %, seconds of a fit.
"""

from lightgbm import LGBMClassifier
from low_rates import main

from toprank.boosting import objective

SETS = "mammography,satimage,oil_spill,yeast,letter,abalone,winequality-white,bank_marketing"
OBJECTIVES = {
    "log loss": "binary",
    "TauFPL 5 %, logistic": objective("TauFPL", tau=0.05, surrogate="logistic"),
    "TauFPL 1 %, logistic": objective("TauFPL", tau=0.01, surrogate="logistic"),
    "TauFPL 5 %, quadratic": objective("TauFPL", tau=0.05),
    "PatMatNP 1 %, beta 1": objective("PatMatNP", tau=0.01, beta=1.0),
    "PatMatNP 5 %, logistic, beta 1": objective("PatMatNP", tau=0.05, beta=1.0, surrogate="logistic"),
}


RIVALS = {
    name: LGBMClassifier(
        n_estimators=200, num_leaves=15, min_child_samples=5, objective=chosen, verbose=-1, n_jobs=1, random_state=0
    )
    for name, chosen in OBJECTIVES.items()
}

if __name__ == "__main__":
    main(RIVALS, __doc__, SETS, splits=5, most_rows=5000)
