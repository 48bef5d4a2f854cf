"""``examples/gates/bayes``: right on a balanced test set, mostly wrong where positives are rare."""

from collections.abc import Mapping

from numpy.random import Generator
from scripts.gate_examples.example import Example, table

EACH = 1200  # labelled positives, and as many negatives
RATES = {"web": (0.92, 0.04), "mobile": (0.90, 0.05), "partner": (0.86, 0.11)}  # TPR and FPR
SHARES = (0.5, 0.35, 0.15)


def _files(rng: Generator) -> Mapping[str, str]:
    rows = []
    for i in range(2 * EACH):
        label = i % 2
        name = str(rng.choice(list(RATES), p=SHARES))
        rows.append((f"case-{i:04d}", label, int(rng.random() < RATES[name][0 if label else 1]), name))
    return {"detections.csv": table(("id", "label", "decision", "subgroup"), rows)}


EXAMPLE = Example(
    "bayes",
    "An abuse detector on 2,400 labelled accounts, half of them abusive: it finds nine in ten, and 94% of its alarms\n"
    "are right. Where one account in a hundred is abusive, most alarms are false, and closing an account cannot be\n"
    "undone. The gate does not ship it at a required precision of 90%; false alarms fall on one subgroup more often\n"
    "than on others. The second command takes rates without counts, and so has no intervals.",
    ("bayes", "--detections", "{here}/detections.csv", "--prevalence", "0.05,0.01", "--ppv", "90%", "--irreversible",
     "--stake", "per-day=20000"),
    _files,
    {"points": ("bayes", "--tpr", "0.9", "--fpr", "0.05", "--prevalence", "0.05,0.01")},
)  # fmt: skip
