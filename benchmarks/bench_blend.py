"""`TopBlend` against its own models, their plain mean and a stack, at low false positive rates.

    python benchmarks/bench_blend.py [--sets mammography,satimage] [--splits 4]

Four models (logistic regression, ExtraTrees, LightGBM, SVC), nothing tuned; at most 3,000 training rows. Needs lightgbm
and the data folder that TOPRANK_DATA names. One line a set and model: the share of positives found at a false positive
rate of 1 %, its mean over rates from 0.2 to 5 %, and seconds of a fit.
"""

import warnings

from lightgbm import LGBMClassifier
from low_rates import main
from sklearn.ensemble import ExtraTreesClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from toprank import TopBlend

SETS = "oil_spill,yeast,satimage,mammography,winequality-white,bank_marketing,ecoli,abalone"
MODELS = [
    ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
    ("ExtraTrees", ExtraTreesClassifier(150, min_samples_leaf=2, random_state=0)),
    (
        "LightGBM",
        LGBMClassifier(
            n_estimators=100,
            num_leaves=15,
            subsample=0.7,
            subsample_freq=1,
            colsample_bytree=0.7,
            min_child_samples=5,
            verbose=-1,
            n_jobs=1,
            random_state=0,
        ),
    ),
    ("SVC", make_pipeline(StandardScaler(), SVC())),
]
RIVALS = {
    **dict(MODELS),
    "StackingClassifier": StackingClassifier(MODELS),
    "plain mean": TopBlend(MODELS, alpha=1e4, random_state=0),
    "TopBlend": TopBlend(MODELS, random_state=0),
}


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    main(RIVALS, __doc__, SETS, splits=4, most_rows=3000)
