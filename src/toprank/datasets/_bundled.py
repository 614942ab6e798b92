"""The two real sets that scikit-learn brings along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toprank.datasets._folder import unknown_name

if TYPE_CHECKING:
    from sklearn.utils import Bunch


def load_bundled(name: str) -> Bunch:
    """Read a set that comes with scikit-learn: no folder and no network are needed.

    Parameters
    ----------
    name : {"breast_cancer", "digits"}
        - ``"breast_cancer"``: 569 x 30, binary. The class of interest is 1: ``y`` is 1 for
          malignant (212) and 0 for benign (357), the opposite of scikit-learn's own coding.
        - ``"digits"``: 1797 x 64, labels 0 to 9. For a binary task take one digit against the
          rest, ``binarize(y, positive=8)``.

    Returns
    -------
    sklearn.utils.Bunch
        With the fields of :func:`load`; ``target_names[y]`` are the names of the classes.

    Examples
    --------
    >>> from toprank.datasets import binarize, load_bundled
    >>> cancer = load_bundled("breast_cancer")
    >>> cancer.X.shape, int(cancer.y.sum()), str(cancer.target_names[1])
    ((569, 30), 212, 'malignant')
    >>> int(binarize(load_bundled("digits").y, positive=8).sum())
    174
    """
    from sklearn import datasets
    from sklearn.utils import Bunch

    if name == "breast_cancer":
        raw = datasets.load_breast_cancer()
        y, target_names = (raw.target == 0).astype(np.int64), raw.target_names[::-1]
        note = "Here 1 is malignant and 0 is benign.\n\n"
    elif name == "digits":
        raw = datasets.load_digits()
        y, target_names, note = raw.target.astype(np.int64), raw.target_names, ""
    else:
        raise unknown_name(name, ["breast_cancer", "digits"], "bundled data set")
    return Bunch(
        X=raw.data,
        y=y,
        feature_names=np.asarray(raw.feature_names),
        target_names=target_names,
        n_train=None,
        extras={},
        name=name,
        DESCR=note + raw.DESCR,
    )
