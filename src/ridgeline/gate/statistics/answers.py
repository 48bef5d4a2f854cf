"""Short answers against gold ones: exact match and token F1 after normalisation (Rajpurkar et al. 2016, SQuAD).

Case, punctuation, articles and runs of blanks do not count; of several gold answers the best match does.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = str.maketrans("", "", string.punctuation)


def normal(text: str) -> str:
    """The text as it is compared."""
    plain = unicodedata.normalize("NFKC", text).lower().translate(_MARKS)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def exact_match(answer: str, gold: Sequence[str]) -> float:
    """1 where the answer is one of the gold ones."""
    said = normal(answer)
    return float(any(said == normal(item) for item in gold))


def token_f1(answer: str, gold: Sequence[str]) -> float:
    """The best harmonic mean of the shares of tokens shared; of two empty texts 1."""
    return max((_f1(normal(answer).split(), normal(item).split()) for item in gold), default=0.0)


def _f1(said: Sequence[str], gold: Sequence[str]) -> float:
    if not said or not gold:
        return float(said == gold)
    shared = sum((Counter(said) & Counter(gold)).values())
    return 2 * shared / (len(said) + len(gold))
