"""Sets that are hard for kernels and for text, drawn at any size: classes in curved bands, and words after Zipf.

    X, y = curved_bands(5400, 5, share=1 / 3)      # dense rows, for kernels
    X, y = zipf_text(100_000, 50_000)              # CSR, for linear models
    python benchmarks/hard_sets.py                 # what they are like

The same arguments give the same set.
"""

import numpy as np
from scipy.sparse import csr_array


def curved_bands(n_rows=5400, n_features=5, *, share=1 / 3, bands=1.0, overlap=0.5, random_state=0):
    """Standard normal rows; the positives lie in bands along curved surfaces, and the classes overlap at their edges.

    `share` is that of the positives, `bands` how many there are between the middle and a distance of 2, and `overlap`
    the noise in units of the bands' height: 0 for none, above 1 hardly anything can be learned.
    """
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_rows, n_features))
    height = X[:, 0] + 0.7 * (X[:, 1] ** 2 - 1)  # a parabola, which every further feature bends on
    for column in range(2, n_features):
        height += 0.5 / np.sqrt(n_features - 2) * X[:, column] * X[:, column - 1]
    noisy = np.cos(0.5 * np.pi * bands * height) + overlap * rng.normal(size=n_rows)
    y = np.zeros(n_rows, dtype=bool)
    y[np.argsort(-noisy, kind="stable")[: max(1, round(share * n_rows))]] = True
    return X, y


def zipf_text(
    n_rows=100_000, n_columns=50_000, *, share=0.1, words=80, signal=0.15, topics=20, noise=0.02, random_state=0
):
    """Counts of words as CSR, `words` a row in the median; every document has one of many topics.

    Words come by Zipf's law, a share `signal` of them from the topic of the document, whose law has the same words in
    another order. A tenth of the topics, at least one, are positive. With the share `noise` a document has the label of
    a topic that is not its own. Harder: a smaller `signal`, more `noise`, more `topics`.
    """
    rng = np.random.default_rng(random_state)
    frequencies = 1.0 / (np.arange(n_columns) + 2.7)
    cumulative = np.cumsum(frequencies / frequencies.sum())
    names = rng.permutation(n_columns)  # so that the order of the columns says nothing
    n_positive = max(1, topics // 10)
    y = rng.random(n_rows) < share
    shown = np.where(rng.random(n_rows) < noise, rng.random(n_rows) < share, y)
    topic = np.where(shown, rng.integers(0, n_positive, n_rows), rng.integers(n_positive, max(topics, 2), n_rows))
    lengths = np.maximum(rng.lognormal(np.log(words), 0.7, n_rows).astype(np.int64), 3)
    document = np.repeat(np.arange(n_rows), lengths)
    rank = np.searchsorted(cumulative, rng.random(len(document)))
    rank = np.minimum(rank, n_columns - 1)
    of_topic = rng.random(len(document)) < signal
    orders = np.stack([rng.permutation(n_columns) for _ in range(max(topics, 2))])
    word = names[rank]
    word[of_topic] = orders[topic[document[of_topic]], rank[of_topic]]
    at = document.astype(np.int32), word.astype(np.int32)
    X = csr_array((np.ones(len(document)), at), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X, y


KERNEL_SETS = {
    "bands 2": {"n_features": 2, "share": 0.3, "bands": 2.0},
    "bands 5": {"n_features": 5},
    "bands 5 rare": {"n_features": 5, "share": 0.05},
    "bands 10": {"n_features": 10, "share": 0.2, "overlap": 0.3},
    "bands 5 noise": {"n_features": 5, "overlap": 1.0},
}
TEXT_SETS = {
    "zipf": {},
    "zipf faint": {"signal": 0.05},
    "zipf noisy": {"signal": 0.1, "noise": 0.1, "topics": 50},
    "zipf rare": {"share": 0.01},
}


def main():
    """Print sizes, shares, and what a common model finds in the sets."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.svm import SVC

    print(f"{'set':16} {'rows':>8} {'columns':>8} {'entries a row':>13} {'positive':>8} {'AUC on new rows':>16}")
    for sets, make, size, model in (
        (KERNEL_SETS, curved_bands, {"n_rows": 3000}, SVC(gamma=0.2)),
        (TEXT_SETS, zipf_text, {"n_rows": 20_000, "n_columns": 20_000}, LogisticRegression(C=0.1, solver="liblinear")),
    ):
        for name, options in sets.items():
            X, y = make(**{**size, **options})
            half = len(y) // 2
            scores = model.fit(X[:half], y[:half]).decision_function(X[half:])
            entries = X.nnz / len(y) if hasattr(X, "nnz") else X.shape[1]
            line = f"{name:16} {len(y):8} {X.shape[1]:8} {entries:13.1f} {y.mean():8.3f}"
            print(f"{line} {roc_auc_score(y[half:], scores):16.3f}", flush=True)


if __name__ == "__main__":
    main()
