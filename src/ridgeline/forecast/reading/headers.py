"""Which column is which: the names that ladders use for N, D, C, the loss and what belongs to a run.

A header is compared in lower case, with every other sign as an underscore; a unit in brackets, as in ``Size (B)`` or
``FLOPs (1e21)``, scales the column.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.parse import COUNT_SUFFIX

PLAIN_N = ("n", "params", "parameters", "n_params", "num_params", "nparams", "n_parameters", "num_parameters",
           "model_size", "param_count", "parameter_count", "model_params", "dense_parameter_count", "size")  # fmt: skip
STATED_N: Mapping[str, tuple[str, ...]] = {
    "total": ("n_total", "total_params", "params_total", "total_parameters", "total_parameter_count",
              "num_total_params", "n_with_embedding", "params_with_embedding"),
    "non-embedding": ("n_non_embedding", "non_embedding_params", "nonembedding_params", "params_non_embedding",
                      "non_embedding_parameters", "non_embedding_param_size", "non_emb_params", "n_non_emb",
                      "n_nonemb", "n_no_embedding", "num_non_embedding_params", "non_embedding"),
    "active": ("n_active", "active_params", "params_active", "activated_params", "active_parameters",
               "activated_parameters", "num_active_params"),
}  # fmt: skip
ALIASES: Mapping[str, tuple[str, ...]] = {
    "D": ("d", "tokens", "n_tokens", "num_tokens", "training_tokens", "train_tokens", "tokens_seen",
          "consumed_tokens", "data_size", "dataset_size", "total_tokens", "token_count"),
    "C": ("c", "flops", "flop", "compute", "training_flops", "train_flops", "training_flop", "total_flops",
          "compute_flops", "training_compute", "c_flops"),
    "loss": ("loss", "final_loss", "val_loss", "validation_loss", "final_val_loss", "eval_loss", "valid_loss",
             "test_loss", "loss_val", "loss_validation", "lm_loss", "ce_loss", "cross_entropy", "nll",
             "train_loss", "training_loss", "final_train_loss"),
    "U": ("u", "unique_tokens", "n_unique", "unique", "tokens_unique", "unique_data"),
    "lr": ("lr", "learning_rate", "peak_lr", "max_lr", "peak_learning_rate"),
    "batch": ("batch_tokens", "batch_size_tokens", "global_batch_tokens", "batch", "bs", "bsz", "batch_size",
              "global_batch_size"),
    "step": ("step", "steps", "iteration", "iter", "global_step"),
    "horizon": ("horizon", "horizon_tokens", "schedule_tokens", "planned_tokens", "decay_tokens"),
    "horizon_steps": ("horizon_steps", "total_steps", "max_steps", "schedule_steps", "planned_steps"),
    "d_model": ("d_model", "width", "hidden_size", "hidden_dim", "n_embd"),
    "layers": ("layers", "n_layers", "num_layers", "depth", "num_blocks", "n_layer"),
    "heads": ("heads", "n_heads", "num_heads", "n_head"),
    "kv_heads": ("kv_heads", "n_kv_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "kqv_size", "d_head"),
    "d_ff": ("d_ff", "ffn_hidden_size", "intermediate_size", "ffn_dim", "d_mlp"),
    "vocab": ("vocab", "vocab_size", "n_vocab"),
    "seq": ("seq", "seq_len", "sequence_length", "context_length", "seq_length"),
}  # fmt: skip
LABEL_ALIASES: Mapping[str, tuple[str, ...]] = {
    "recipe": ("recipe", "group", "data", "dataset", "corpus", "split", "hparams", "variant", "config", "family"),
    "seed": ("seed", "random_seed"),
    "budget": ("budget", "budget_label", "isoflop", "isoflop_budget", "flops_budget", "flop_budget"),
    "schedule": ("schedule", "lr_schedule", "scheduler", "decay", "warmup"),
    "run": ("run", "run_name", "run_id", "name", "exp_name", "experiment", "hyper_id", "id"),
}
CONVENTION = ("params_convention", "n_convention", "param_convention", "param_count", "counting", "counts")
_UNIT = re.compile(r"[(\[]\s*(?:(\d+(?:\.\d+)?[eE]\d+)|([kKmMbBgGtT]))\s*[)\]]\s*$")


@dataclass(frozen=True)
class Match:
    """``found``: the header of every column; ``others``: the second counts of N; ``params``: what N counts."""

    found: Mapping[str, str]
    labels: Mapping[str, tuple[str, ...]]
    others: Mapping[str, str]
    params: str
    convention: str = ""
    scale: Mapping[str, float] = field(default_factory=dict)


def key(header: str) -> str:
    """A header as it is compared."""
    return re.sub(r"[^a-z0-9]+", "_", _UNIT.sub("", header).strip().lower()).strip("_")


def unit_of(header: str) -> float:
    """What a unit in brackets multiplies a column by; 1 where there is none."""
    match = _UNIT.search(header)
    if match is None:
        return 1.0
    return float(match[1] or COUNT_SUFFIX[match[2].lower()])


def match(names: Sequence[str], chosen: Mapping[str, str], params: str, numeric: Sequence[str]) -> Match:
    """The columns of a header. ``chosen`` overrules the aliases; ``numeric`` are the headers that hold numbers.

    Raises `InputError` for a chosen header that is not there, and for two counts of N between which nothing chooses.
    """
    for target, header in chosen.items():
        if header not in names:
            hint = did_you_mean(header, names, "the file has " + ", ".join(names[:20]))
            raise InputError.expected(f"a column for {target}", header, where="the header", hint=hint)
    free = [name for name in names if name not in chosen.values()]
    by_key: dict[str, str] = {}
    for name in free:
        by_key.setdefault(key(name), name)
    numbers = {k: name for k, name in by_key.items() if name in numeric}
    found = {target: header for target, header in chosen.items() if target not in LABEL_ALIASES}
    for target, aliases in ALIASES.items():
        header = next((numbers[alias] for alias in aliases if alias in numbers), "")
        if target not in found and header:
            found[target] = header
    counted = {stated: next((numbers[a] for a in aliases if a in numbers), "") for stated, aliases in STATED_N.items()}
    counted = {stated: header for stated, header in counted.items() if header}
    declared = _count_of_n(found, counted, numbers, params)
    labels: dict[str, tuple[str, ...]] = {label: (chosen[label],) for label in LABEL_ALIASES if label in chosen}
    used = set(found.values())
    for label, aliases in LABEL_ALIASES.items():
        headers = tuple(by_key[alias] for alias in aliases if alias in by_key and by_key[alias] not in used)
        if headers:
            labels.setdefault(label, headers)
    others = {stated: header for stated, header in counted.items() if header != found.get("N")}
    convention = next((by_key[alias] for alias in CONVENTION if alias in by_key and alias not in numbers), "")
    scale = {target: unit_of(header) for target, header in found.items()}
    return Match(found, labels, others, declared, convention, scale)


def _count_of_n(found: dict[str, str], counted: Mapping[str, str], numbers: Mapping[str, str], params: str) -> str:
    """Choose the column of N, put it into ``found``, and say what it counts."""
    plain = next((numbers[alias] for alias in PLAIN_N if alias in numbers), None)
    if "N" in found:
        stated = next((s for s, aliases in STATED_N.items() if key(found["N"]) in aliases), "")
        if params and stated and stated != params:
            raise InputError.expected(f"a column of {params} parameters", found["N"], where="the header")
        return params or stated or "unstated"
    if params in counted:
        found["N"] = counted[params]
        return params
    if plain is not None:
        found["N"] = plain
        return params or "unstated"
    if params and counted:
        hint = f"declare the one that is there, or name its column: {', '.join(counted.values())}"
        raise InputError.expected(f"a column of {params} parameters", ", ".join(counted), where="the header", hint=hint)
    if len(counted) > 1:
        hint = "choose with params=" + " or params=".join(counted)
        raise InputError.expected("one count of N", " and ".join(counted.values()), where="the header", hint=hint)
    for stated, header in counted.items():
        found["N"] = header
        return stated
    return params or "unstated"


def suggestion(target: str, names: Sequence[str]) -> str:
    """The headers that look like a column of ``target``, as a hint."""
    known = ALIASES.get(target, ()) + (PLAIN_N + sum(STATED_N.values(), ()) if target == "N" else ())
    long = [alias for alias in known if len(alias) > 2]
    close = [name for name in names if difflib.get_close_matches(key(name), long, n=1, cutoff=0.7)]
    near = f"did you mean {', '.join(close[:3])}? " if close else ""
    return f'{near}name the column: columns={{"{target}": "{close[0] if close else "HEADER"}"}}'
