"""``read_config``: the parsed ``config.json`` of a model -> ``ModelSpec``.

How to add a family (one file in this folder, nothing else to edit):

    @reads("my_model")                                    # registry.reads: the model_type values it reads
    def my_model(f: Fields) -> ModelSpec:
        n = f.layers()                                    # num_hidden_layers
        d = f.dim("hidden_size")                          # required, positive
        kv = f.dim("num_key_value_heads", default=8, null=f.dim("num_attention_heads"))   # absent / JSON null
        tied = f.flag("tie_word_embeddings", default=True)
        f.skip("attn_temperature_*")                      # known to change no count in this family
        return assemble(f, d_model=d, vocab=..., tied=tied, keys=["full"] * n, build=lambda key: Layer(...))

``parts`` has the usual pieces (``attention``, ``dense_mlp``, ``rms_norms``, ``assemble``); ``f.sub("text_config")``
opens a nested config; ``f.error(name, expected)`` makes the refusal; ``f.require(name, False)`` refuses a variant.
``read_config`` calls the reader, then ``f.finish``: a field that nobody read, that is neither in ``harmless.toml`` nor
skipped by the family, is refused by name unless its value is null, false or empty.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.registry import readers
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import InputError, did_you_mean

_OTHER_HEADS = ("Classification", "QuestionAnswering", "RewardModel", "ForMaskedLM")
_NOT_DECODERS = frozenset(
    {"albert", "bart", "bert", "clip", "deberta", "deberta-v2", "dinov2", "distilbert", "electra", "marian", "mbart"}
    | {"modernbert", "mt5", "pegasus", "roberta", "siglip", "t5", "umt5", "vit", "wav2vec2", "whisper", "xlm-roberta"}
)


def read_config(
    config: Mapping[str, Any], *, where: str = "$", name: str = "", allow_fields: Sequence[str] = ()
) -> ModelSpec:
    """The model that a Hugging Face ``config.json`` (already parsed) describes.

    ``allow_fields`` names unknown fields to accept. Raises ``InputError`` at the field that cannot be used: not a
    model config, unknown ``model_type``, a size that is negative, absurd or of the wrong type, sizes that do not
    divide, or a field whose effect on the parameter count is not known.
    """
    if not isinstance(config, Mapping):
        raise InputError.expected("a JSON object", config, where=where)
    fields = Fields(config, where)
    model_type = _model_type(config, where)
    _check_head(fields)
    reader = readers()[model_type]
    named = _class_type(config)
    if named is not None and readers()[named] is not reader and not model_type.startswith(named):
        fields.note(f"architectures names a {named} model; the model_type, {model_type}, is counted")
    try:
        spec = reader(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"Expected sizes that fit together, got: {first['msg']},", where=where) from error
    fields.finish(allow_fields)
    label = name or spec.name or str(config.get("_name_or_path") or "") or model_type
    notes = (*spec.notes, *fields.notes)
    return spec.model_copy(
        update={"name": label, "family": model_type, "provenance": dict(fields.provenance), "notes": notes}
    )


def _model_type(config: Mapping[str, Any], where: str) -> str:
    value = config.get("model_type")
    if value is None:
        value = _guess_from_class(config)
    if value is None:
        raise InputError(
            "Expected the config.json of a language model, got a JSON object without model_type,",
            where=where,
            hint=_what_it_is(config),
        )
    known = readers()
    if not isinstance(value, str) or value not in known:
        hint = f"{len(known)} model types are known; write the model as a TOML instead"
        if str(value) in _NOT_DECODERS:
            hint = "encoders, encoder-decoders, vision and speech models are not counted"
        elif value:
            hint = did_you_mean(str(value), known, hint)
        raise InputError.expected("a known model_type", value, where=f"{where}.model_type", hint=hint)
    return value


def _what_it_is(config: Mapping[str, Any]) -> str:
    """The hint for a JSON object without a model type."""
    if "peft_type" in config:
        return f"this is an adapter; its base model is {config.get('base_model_name_or_path')}"
    if "_class_name" in config:
        return "this is a config of a diffusion pipeline"
    return "the file in the folder of a Hugging Face model is named config.json"


def _guess_from_class(config: Mapping[str, Any]) -> str | None:
    """The model type of a config that names its class, or its nested text config, but not itself."""
    nested = config.get("text_config")
    if isinstance(nested, Mapping) and isinstance(nested.get("model_type"), str):
        base = nested["model_type"].removesuffix("_text")
        return base if base in readers() else None
    return _class_type(config)


def _class_type(config: Mapping[str, Any]) -> str | None:
    """The model type that the first class of ``architectures`` is named after, if one is known."""
    classes = config.get("architectures")
    if not isinstance(classes, list) or not classes:
        return None
    stem = str(classes[0]).split("For")[0].removesuffix("LMHeadModel").lower()
    return next((t for t in readers() if t.replace("_", "") == stem), None)


def _check_head(fields: Fields) -> None:
    """A classifier or reward head is not the language model head that the readers count."""
    classes = fields.items("architectures") or []
    for name in map(str, classes):
        if any(word in name for word in _OTHER_HEADS):
            raise fields.error(
                "architectures[0]", "a causal language model", name, hint="remove the field to count it as one"
            )
        if name.endswith("Model") and not name.endswith("LMHeadModel"):
            fields.note(f"{name} names the trunk alone; the language-model head is counted too")
