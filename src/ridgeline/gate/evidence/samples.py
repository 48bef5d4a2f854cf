"""One run's per-example results, as columns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ridgeline.core.case import InputFile
from ridgeline.core.lost import Loss

LOSSES = ("loss", "losses", "nll", "entropy", "likelihood")  # in nat; a likelihood where it is a negative one
LOWER_IS_BETTER = (
    *LOSSES[:-1], "perplexity", "ppl", "bpb", "bpc", "bits", "brier", "ece", "kl", "kld", "divergence", "distance",
    "error", "errors", "mae", "mse", "rmse", "wer", "cer", "ter", "fpr", "fnr", "cost", "latency", "hallucination",
    "hallucinations", "hallucinated", "toxicity", "toxic", "unsafe", "violation", "violations", "failure", "failures",
    "failed", "incorrect", "wrong",
)  # fmt: skip
SHARES = (
    "acc", "accuracy", "exact", "match", "f1", "correct", "reward", "pass", "passed", "success", "utility", "resisted",
    "confidence", "found", "recall", "precision", "auc",
)  # fmt: skip
HIGHER_IS_BETTER = (*SHARES, "em", "score", "bleu", "chrf", "rouge", "mcc", "mc1", "mc2", "ndcg", "mrr", "map", "win")
_ENDS = ("loss", "nll", "entropy", "perplexity")  # written in one word: logloss, crossentropy
_WORD = re.compile("[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z0-9]+")


def words_of(metric: str) -> list[str]:
    """The words of a metric's name in lower case, however they are joined: ``val/logLoss`` is val, log, loss."""
    return [word.lower() for word in _WORD.findall(metric)]


def is_loss(metric: str) -> bool:
    """Whether the metric's name says that it is a loss in nat."""
    words = words_of(metric)
    if "likelihood" in words:
        return bool({"neg", "negative"} & set(words))
    return any(word in LOSSES or word.endswith(_ENDS[:-1]) for word in words)


def lower_is_better(metric: str) -> bool:
    """Whether the metric's name says that less is better: losses, perplexities, error rates."""
    return is_loss(metric) or any(word in LOWER_IS_BETTER or word.endswith(_ENDS) for word in words_of(metric))


def known_direction(metric: str) -> bool:
    """Whether the metric's name says which way is better."""
    return lower_is_better(metric) or any(word in HIGHER_IS_BETTER for word in words_of(metric))


def higher_after_renaming(metric: str, column: str) -> bool:
    """Whether more of a column is better that was given a metric's name: as that name says, else as its own."""
    telling = metric if lower_is_better(metric) or any(word in SHARES for word in words_of(metric)) else column
    return not lower_is_better(telling)


Texts = NDArray[np.object_]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Samples:
    """Rows of one run; all columns have ``len(keys)`` entries.

    ``keys`` say which example a row is: task, filter, hashes of document and target, and the occurrence among equal
    ones; never the row number. ``scores`` by metric, NaN where the row has none; ``errors`` marks rows that failed.
    ``labels`` are what slices and clusters are cut by (``slice``, ``subject``, ``user`` ...). ``prompts`` are hashes of
    what was sent, None where the log has none. ``settings`` hold what must agree between two runs (tokenizer, chat
    template, seed, limit ...) and what is compared (model). ``lost`` is what could not be read. ``measured_only`` names
    metrics for which a failed row is no wrong answer: an attack on an agent that crashed was neither resisted nor not.
    ``directions`` say of a metric whether higher is better, where the log says it or the metric was given another name;
    ``columns`` what a metric with another name is called in the log.
    """

    run: str
    keys: Texts
    scores: Mapping[str, Floats]
    errors: Mask
    labels: Mapping[str, Texts] = field(default_factory=dict)
    prompts: Texts | None = None
    outputs: Texts | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[Loss, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    measured_only: tuple[str, ...] = ()
    directions: Mapping[str, bool] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def lower_is_better(self, metric: str) -> bool:
        """Whether less of a metric is better: as the log says, else by its name."""
        return not self.directions[metric] if metric in self.directions else lower_is_better(metric)

    def __len__(self) -> int:
        return len(self.keys)
