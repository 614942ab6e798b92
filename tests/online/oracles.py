"""Plain NumPy versions of the online rankers, from the formulas; they import nothing of toprank."""

import numpy as np
from scipy.stats import norm


class SplitMix64:
    """The generator of the compiled loops, with Python's integers."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def share(self):
        return (self.bits() >> 11) * 2.0**-53


def seed_of(random_state):
    return int(np.random.RandomState(random_state).randint(np.iinfo(np.int32).max))


class Buffer:
    """Rows of one class under one of the two policies."""

    def __init__(self, policy, size, random):
        self.policy, self.size, self.random = policy, size, random
        self.rows, self.seen, self.taken = [], 0.0, 0

    def offer(self, x, weight):
        if len(self.rows) < self.size:
            self.rows.append(x)
        elif self.policy == "fifo":
            self.rows[self.taken % self.size] = x
        elif self.random.share() * self.seen < self.size * weight:
            self.rows[int(self.random.share() * self.size)] = x
        else:
            return
        self.taken += 1


def stream(X, y, weights, policy, size, random_state, kept=1.0):
    """Yield (x, label ±1, weight, buffer of the other class), and keep the buffers up to date."""
    random = SplitMix64(seed_of(random_state))
    buffers = {-1: Buffer(policy, size, random), 1: Buffer(policy, size, random)}
    for x, label, weight in zip(X, 2 * y - 1, weights, strict=True):
        if weight == 0:
            continue
        for buffer in buffers.values():
            buffer.seen *= kept
        buffers[label].seen += weight
        yield x, label, weight, buffers[-label]
        buffers[label].offer(x, weight)


def confidence_weighted(v, m, phi, C):
    """α, √u as printed in the paper."""
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    alpha = min(C, max(0, (-m * psi + np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)) / (v * zeta)))
    return alpha, (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4 * v)) / 2


def cbr(X, y, weights, *, covariance, policy, size, C, eta=0.7, growing=False, kept=1.0, random_state=0):
    """μ and Σ, or μ and the variances."""
    d, phi = X.shape[1], norm.ppf(eta)
    mu, sigma, G = np.zeros(d), np.eye(d), np.ones(d)
    for t, (x, label, weight, buffer) in enumerate(stream(X, y, weights, policy, size, random_state, kept)):
        G = 1 + kept * (G - 1)
        if kept < 1:
            turns = max(1, int(np.ceil(4 * d * (1 - kept))))
            inverse = kept * np.linalg.inv(sigma)
            for turn in range(turns):
                column = (t * turns + turn) % d
                inverse[column, column] += (1 - kept) * d / turns
            sigma = np.linalg.inv(inverse)
        penalty = C * weight * (max(1, buffer.seen / buffer.size) if growing else 1)
        for other in buffer.rows:
            z = x - other
            product = sigma @ z if covariance == "full" else z / G
            v = z @ product
            if v == 0:
                continue
            alpha, root = confidence_weighted(v, label * (mu @ z), phi, penalty)
            mu = mu + alpha * label * product
            sigma = sigma - alpha * phi / (root + alpha * phi * v) * np.outer(product, product)
            G = G + alpha * phi / root * z**2
    return mu, sigma if covariance == "full" else 1 / G


def oam(X, y, weights, *, update, policy, size, C, random_state=0):
    w = np.zeros(X.shape[1])
    for x, label, weight, buffer in stream(X, y, weights, policy, size, random_state):
        C_t = C * max(1, buffer.seen / buffer.size) * weight
        if update == "gradient":
            w = w + sum((C_t * label * (x - other) for other in buffer.rows if label * w @ (x - other) < 1), 0 * w)
            continue
        for other in buffer.rows:
            z = x - other
            loss = 1 - label * w @ z
            if loss > 0 and z.any():
                w = w + label * min(C_t, loss / (z @ z)) * z
    return w


def weighted_moments(rows, weights):
    """Mean and covariance, each row counted by its weight."""
    rows, weights = np.array(rows), np.array(weights)
    mean = weights @ rows / weights.sum()
    return mean, (rows - mean).T @ ((rows - mean) * weights[:, None]) / weights.sum()


def projected_moments(rows, weights, signs):
    """Mean, and ZZᵀ / n with the rows projected by their signs."""
    rows, weights, signs = np.array(rows), np.array(weights), np.array(signs)
    mean = weights @ rows / weights.sum()
    Z = (rows - mean).T @ (np.sqrt(weights)[:, None] * signs) / np.sqrt(signs.shape[1])
    return mean, Z @ Z.T / weights.sum()


def square_loss(X, y, weights, *, rate, alpha, rank=None, delta=None, random_state=0):
    """OPAUC, with a rank its low-rank form, or with a delta AdaOAM; moments are computed anew for every row."""
    w, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    random = SplitMix64(seed_of(random_state))
    seen = {-1: ([], [], []), 1: ([], [], [])}
    for x, label, weight in zip(X, 2 * y - 1, weights, strict=True):
        if weight == 0:
            continue
        words = [random.bits() for _ in range(0, rank or 0, 64)]
        drawn = [1.0 if words[a // 64] >> a % 64 & 1 else -1.0 for a in range(rank or 0)]
        for part, value in zip(seen[label], (x, weight, drawn), strict=True):
            part.append(value)
        rows, of_rows, signs = seen[-label]
        if not rows:
            continue
        mean, S = projected_moments(rows, of_rows, signs) if rank else weighted_moments(rows, of_rows)
        g = ((x - mean) @ w - label) * (x - mean) + S @ w + alpha * w
        if delta is None:
            w = w - min(rate * weight, 1 / (2 * alpha + (x - mean) @ (x - mean) + np.trace(S))) * g
        else:
            squares += (weight * g) ** 2
            w = w - rate * weight * g / (delta + np.sqrt(squares))
    return w


def uniexp(X, y, weights, *, rate, alpha):
    w, total = np.zeros(X.shape[1]), {-1: 0.0, 1: 0.0}
    for x, label, weight in zip(X, 2 * y - 1, weights, strict=True):
        if weight == 0:
            continue
        total[label] += weight
        m = label * w @ x
        if x.any():
            loss = weight * sum(total.values()) / (2 * total[label]) * np.exp(-m)
            w = w + label * min(rate * loss, max(1, 1 - m) / (x @ x)) * x
        w = w / (1 + rate * alpha)
    return w
