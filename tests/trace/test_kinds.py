"""Which device work a kernel is for."""

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.trace.events import NONE, Category, Info, Kind, events
from ridgeline.trace.kinds import classify, house_rules, kind_of, own_name, user_rules

COMM = [
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
    "rccl_all_gather",
    "void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*)",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(int*)",
    "void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*)",
    "void deep_ep::intranode::notify_dispatch<8>(int const*)",
    "hybrid_ep::dispatch_kernel<8>(int)",
    "nvshmemi_barrier_all_kernel",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    "void c10d::symmetric_memory::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(unsigned long)",
    "multimem_all_reduce_kernel<c10::BFloat16, 16>",
    "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16>(float*)",
    "void trtllm::lamport_style_one_shot_all_reduce(int)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<half>(int)",
    "void quickreduce::allreduce_prototype_twoshot<int>(int)",
    "all-reduce.17",
    "all-gather-start.3",
    "reduce-scatter.1",
    "collective-permute-done.2",
    "%all-to-all.4",
    "async-collective-permute-start",
    "send-done.1",
    "hcclAllReduce",
]
COMPUTE = {
    "triton_poi_fused_all_gather_into_tensor_copy_3": "elementwise",
    "triton_red_fused_reduce_scatter_tensor_sum_1": "reduction",
    "triton_per_fused__log_softmax_backward_data_4": "loss and softmax",
    "triton_red_fused__fused_rms_norm__fused_rms_norm_backward_add_11": "normalization",
    "void gemm_all_reduce_kernel<half>(int)": "matmul with collective",
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<int> >(int)": "attention",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(int)": "matmul",
    "nvjet_tst_128x256_64x4_2x1_v_bz_TNT": "matmul",
    "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32": "matmul",
    "volta_sgemm_128x64_nn": "matmul",
    "volta_scudnn_128x64_relu_interior_nn_v1": "convolution",
    "void wgrad_alg0_engine<float, 128>(int)": "convolution",
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int)": "elementwise",
    "void at::native::vectorized_elementwise_kernel<4, at::native::clamp()::{lambda(float)#1}>(int)": "elementwise",
    "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(int)>(int)": "copy and layout",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float> > >(int)": "reduction",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<AdamFunctor<float> >(int)": "optimizer",
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*)": "loss and softmax",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>(int)": "normalization",
    "void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel<half>(at::PhiloxCudaState)": "embedding",
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float>(int)": "random numbers",
    "fused_moe_kernel": "expert routing",
    "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)": "expert routing",
    "void cub::DeviceScanKernel<int>(int*)": "reduction",
    "loop_add_fusion_3": "elementwise",
    "partition-id": "index of the device",
    "%replica-id.2": "index of the device",
}


@pytest.mark.parametrize("name", COMM)
def test_communication_whatever_the_library(name: str) -> None:
    assert kind_of(name)[0] == Kind.COMM


@pytest.mark.parametrize(("name", "family"), COMPUTE.items())
def test_compute_and_its_family(name: str, family: str) -> None:
    assert kind_of(name) == (Kind.COMPUTE, family)


@pytest.mark.parametrize("name", ["event_wait", "cudaStreamSynchronize barrier_kernel", "c10d::barrier_kernel"])
def test_waits(name: str) -> None:
    assert kind_of(name.rpartition(" ")[2])[0] == Kind.SYNC


def test_a_copy_inside_the_device_may_be_a_kernel() -> None:
    assert kind_of("__amd_rocclr_copyBuffer") == (Kind.D2D, "copy in the device")


@pytest.mark.parametrize("name", ["", "zzz", "saxpy(int, float, float*, float*)", "kernel", "k_17", "\x00<(("])
def test_what_no_rule_knows_is_said(name: str) -> None:
    assert kind_of(name) == (Kind.UNCLASSIFIED, "unclassified")


def test_the_users_rules_come_first() -> None:
    rules = user_rules({"^zzz": "comm", "nvjet": "compute:my matmul"})
    assert kind_of("zzz_ring", rules) == (Kind.COMM, "")
    assert kind_of("nvjet_1", rules) == (Kind.COMPUTE, "my matmul")
    assert kind_of("nvjet_1") == (Kind.COMPUTE, "matmul")


@pytest.mark.parametrize(("table", "said"), [({"a": "talk"}, "kind of kernel"), ({"(": "comm"}, "regular expression")])
def test_rules_that_do_not_parse(table: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        user_rules(table)


def test_own_name() -> None:
    assert own_name("void at::native::(anonymous namespace)::reduce_kernel<512, 1>(int)") == "at::native::reduce_kernel"
    assert own_name("gemm") == "gemm"


def test_every_house_rule_can_fire() -> None:
    assert len(house_rules()) > 80
    assert {rule.kind for rule in house_rules()} == {Kind.COMM, Kind.COMPUTE, Kind.SYNC, Kind.D2D}
    assert all(rule.family for rule in house_rules())


def test_classify_fills_what_the_reader_left_open() -> None:
    names = ["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pageable)", "Memcpy PtoP", "CopyDeviceToDevice"]
    names += ["copy", "Memset (Device)", "ncclKernel", "gemm", "aten::mm", "Stream Wait Event"]
    category = [Category.MEMCPY] * 5 + [Category.MEMSET, Category.KERNEL, Category.KERNEL, Category.HOST_OP]
    category += [Category.DEVICE_SYNC]
    columns = {"ts": range(10), "dur": [1] * 10, "name": range(10), "category": category}
    table = events(columns, names, [{"copy": "HtoD"}], Info("test", "t"))
    meta = np.where(table.name == 4, 0, NONE)
    done = classify(table.with_columns(meta=meta))
    kinds = [
        Kind.H2D,
        Kind.D2H,
        Kind.P2P,
        Kind.D2D,
        Kind.H2D,
        Kind.MEMSET,
        Kind.COMM,
        Kind.COMPUTE,
        Kind.NONE,
        Kind.SYNC,
    ]
    assert done.kind.tolist() == kinds
    decided = table.with_columns(kind=np.full(10, int(Kind.COMPUTE)))
    assert classify(decided).kind.tolist() == [Kind.COMPUTE] * 10
