"""Names of collectives, element types and sizes."""

import pytest

from ridgeline.trace.collective_names import dtype_of, element_bytes, kind_of, size_of


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter", "bf16"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)", "all_reduce", "fp32"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "point_to_point", "int8"),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*)", "dispatch", ""),
        ("all-gather-start.3", "all_gather", ""),
        ("ragged-all-to-all.1", "all_to_all", ""),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "other", ""),
    ],
)
def test_kernel_names_tell_kind_and_type(name: str, kind: str, dtype: str) -> None:
    assert (kind_of({}, name), dtype_of({}, name)) == (kind, dtype)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_allgather_base", "all_gather"), ("all_gather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"), ("allreduce_coalesced", "all_reduce"),
        ("all_to_allv", "all_to_all"), ("broadcast", "broadcast"), ("send", "point_to_point"),
        ("barrier", "barrier"), ("reduce", "reduce"), ("gather", "gather"), ("something", "other"),
    ],
)  # fmt: skip
def test_details_go_before_the_kernel(name: str, kind: str) -> None:
    kernel = "ncclDevKernel_AllReduce_Sum_f32" if name != "something" else "kernel"
    assert kind_of({"collective": name}, kernel) == kind


@pytest.mark.parametrize(
    ("dtype", "name", "width"),
    [("Float", "fp32", 4), ("BFloat16", "bf16", 2), ("Long", "long", 8), ("Byte", "byte", 1),
     ("Float8_e4m3fn", "fp8", 1), ("Half", "fp16", 2)],
)  # fmt: skip
def test_element_types(dtype: str, name: str, width: int) -> None:
    assert dtype_of({"dtype": dtype}, "") == name
    assert element_bytes(name) == width


@pytest.mark.parametrize(
    ("kind", "expected"), [("all_gather", 160), ("reduce_scatter", 20), ("all_reduce", 160), ("all_to_all", 160)]
)
def test_sizes(kind: str, expected: int) -> None:
    assert size_of(kind, {"in_numel": 10, "out_numel": 80}, "bf16") == expected


def test_sizes_that_are_not_known() -> None:
    assert size_of("all_reduce", {"in_numel": 10, "out_numel": 10}, "qint3") is None
    assert size_of("all_reduce", {}, "bf16") is None
    assert size_of("all_reduce", {"in_numel": "10", "out_numel": None}, "bf16") is None
