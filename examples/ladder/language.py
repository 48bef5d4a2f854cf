"""A language with a known entropy: a Markov source of order three with Zipf-distributed words.

ln p(x | a, b, c) = ln zipf(x) + G1[a, x] + G2[a, b, x] + G3[a, b, c, x] + normalisation, where a is the word just
before x and the G are standard normal, times a strength. Frequent contexts are learned first and rare ones take more
tokens and more parameters, so that the loss falls with both. The entropy rate is the floor that a fit should find.
"""

import numpy as np
from numpy.typing import NDArray

VOCAB = 64
ZIPF = 1.1  # exponent of the word frequencies
STRENGTHS = (2.0, 2.0, 1.5)  # standard deviation of ln p by order
SEED = 20260101
STREAMS = 4096  # sequences that are drawn side by side
BURN_IN = 16  # words before a stream is read


def table() -> NDArray[np.float32]:
    """Cumulative p(x | a, b, c), shape (VOCAB**3, VOCAB), row (c*VOCAB + b)*VOCAB + a: the latest word is last."""
    rng = np.random.default_rng(SEED)
    words = -ZIPF * np.log(np.arange(1, VOCAB + 1, dtype=np.float32))
    first, second, third = (
        strength * rng.standard_normal((VOCAB,) * (order + 2), dtype=np.float32)
        for order, strength in enumerate(STRENGTHS)
    )
    scores = words + first + second + third  # broadcast from the right: [c, b, a, x]
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.cumsum(odds / odds.sum(axis=-1, keepdims=True), axis=-1).reshape(-1, VOCAB)


def draw(cumulative: NDArray[np.float32], tokens: int, seed: int) -> NDArray[np.int8]:
    """A text of at least ``tokens`` words, shape (STREAMS, length); streams are independent of each other."""
    rng = np.random.default_rng((SEED, seed))
    length = -(-tokens // STREAMS)
    text = rng.integers(0, VOCAB, (STREAMS, length + BURN_IN), dtype=np.int8)
    for t in range(3, text.shape[1]):
        rows = _rows(text, t)
        drawn = (cumulative[rows] < rng.random((STREAMS, 1), dtype=np.float32)).sum(axis=1)
        text[:, t] = np.minimum(drawn, VOCAB - 1)
    return text[:, BURN_IN:]


def entropy(cumulative: NDArray[np.float32], text: NDArray[np.int8]) -> float:
    """Mean -ln p of the words of a text that have three words before them: the floor of any model, in nats."""
    total, count = 0.0, 0
    for t in range(3, text.shape[1]):
        row = cumulative[_rows(text, t)]
        word = text[:, t, None].astype(int)
        below = np.where(word > 0, np.take_along_axis(row, np.maximum(word - 1, 0), 1), 0.0)
        total -= float(np.log(np.take_along_axis(row, word, 1) - below).sum())
        count += len(text)
    return total / count


def _rows(text: NDArray[np.int8], t: int) -> NDArray[np.int64]:
    a, b, c = (text[:, t - back].astype(np.int64) for back in (1, 2, 3))
    return (c * VOCAB + b) * VOCAB + a
