"""Families of operations, and the names that drivers give devices."""

import time

import pytest

from ridgeline.core import catalog
from ridgeline.trace.levels.families import device_named, families, family_of, labels


@pytest.mark.parametrize(
    ("op", "kernel", "family"),
    [
        ("aten::mm", "nvjet_hsh", "matmul"), ("aten::_scaled_mm", "", "matmul"), ("", "Cijk_Ailk_MT64", "matmul"),
        ("aten::_flash_attention_forward", "", "attention"), ("flash_attn_3::bwd", "", "attention"),
        ("aten::convolution_backward", "", "convolution"), ("aten::native_layer_norm", "", "normalization"),
        ("aten::add_", "", "elementwise"), ("aten::copy_", "", "copy"), ("aten::sum", "", "reduction"),
        ("triton_poi_fused_add_0", "", "elementwise"), ("aten::_foreach_add_", "", "optimizer"),
        ("aten::_softmax", "", "softmax"), ("aten::embedding", "", "indexing"), ("", "my_kernel", "other"),
        ("c10d::allreduce_", "", "communication"),
    ],
)  # fmt: skip
def test_families(op: str, kernel: str, family: str) -> None:
    assert family_of(op, kernel) == family


def test_every_family_has_a_label() -> None:
    assert {family.key for family in families()} | {"other"} == set(labels())


@pytest.mark.parametrize(
    ("name", "slug"),
    [("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"), ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
     ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"), ("AMD Instinct MI300X", "mi300x"), ("NVIDIA H800", "h800-sxm-80gb"),
     ("NVIDIA GH200 480GB", "gh200-sxm-96gb"), ("NVIDIA H200", "h200-sxm-141gb"),
     ("NVIDIA GB200", "gb200"), ("TPU v6 lite", "tpu-v6e")],
)  # fmt: skip
def test_devices(name: str, slug: str) -> None:
    found = device_named(name)
    assert found is not None
    assert found.slug == slug


@pytest.mark.parametrize("name", ["", "NVIDIA A100-PG509-200", "AMD Instinct MI210", "ARTEMIS", "H"])
def test_an_unknown_name_is_nobody(name: str) -> None:
    assert device_named(name) is None


def test_every_rule_names_a_device_of_the_catalog() -> None:
    import tomllib

    text = (catalog.DATA / "names" / "device_names.toml").read_text(encoding="utf-8")
    for _, slug in tomllib.loads(text)["names"]:
        assert catalog.device(slug).slug == slug


def test_a_hostile_name_costs_no_time() -> None:
    start = time.process_time()
    family_of("Conv" * 100_000, "flash_attn" * 100_000)
    assert time.process_time() - start < 1
