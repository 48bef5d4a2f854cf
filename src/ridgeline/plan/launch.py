"""How to start a job: a Slurm batch script, and a Ray program that starts the same command on every node.

What only the site knows is a placeholder in angle brackets: accounts, partitions, images, paths. Names: Slurm's
``sbatch`` options, ``torch.distributed.run`` of PyTorch 2, ``ray.util.placement_group`` of Ray 2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.plan.formats._common import Format
from ridgeline.plan.job import Job

PORT = 29500  # torch.distributed's usual one
_PLACEHOLDERS = "What stands in <ANGLE BRACKETS> only your site knows."


@dataclass(frozen=True)
class Nodes:
    """Hosts of a launch and chips on each."""

    nodes: int
    chips: int

    @classmethod
    def of(cls, job: Job, chips: int = 0) -> "Nodes":
        """Whole nodes of ``chips`` chips, of the job's scale-up domain where not said. Raises `InputError`."""
        if chips < 0:
            raise InputError.expected("at least one chip a host", chips, where="--node-size")
        size = chips or job.node_size
        if size < 1:
            hint = "give --node-size, the chips of one host"
            raise InputError("Expected the chips of a node, got none,", where="$.cluster.node_size", hint=hint)
        size = min(size, job.plan.chips)
        if job.plan.chips % size:
            expected = f"a divisor of the {job.plan.chips} chips"
            raise InputError.expected(expected, size, where="$.cluster.node_size")
        return cls(job.plan.chips // size, size)


def slurm(job: Job, form: Format, file: str, *, node_chips: int = 0) -> str:
    """An sbatch script for a written configuration. ``node_chips``: chips of a host, where not the scale-up domain."""
    hosts = Nodes.of(job, node_chips)
    tasks = hosts.chips if form.starter == "python" else 1
    prelude, program = form.program(file)
    lines = [
        "#!/bin/bash",
        f"# {form.title} on {job.plan.chips} chips. {_PLACEHOLDERS}",
        "#SBATCH --job-name=<NAME>",
        "#SBATCH --account=<ACCOUNT>",
        "#SBATCH --partition=<PARTITION>",
        f"#SBATCH --nodes={hosts.nodes}",
        f"#SBATCH --ntasks-per-node={tasks}",
        f"#SBATCH --gpus-per-node={hosts.chips}",
        "#SBATCH --exclusive",
        "#SBATCH --time=<HH:MM:SS>",
        "#SBATCH --output=<LOG_FOLDER>/%x-%j.log",
        "set -euo pipefail",
        *_environment(job, form),
        *([prelude] if prelude else []),
    ]
    if form.starter == "python":
        return "\n".join([*lines, f"srun --kill-on-bad-exit=1 python3 {program}"]) + "\n"
    lines.append('head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
    words = [
        "srun --kill-on-bad-exit=1 torchrun",
        f"--nnodes {hosts.nodes} --nproc-per-node {hosts.chips}",
        f'--rdzv-backend c10d --rdzv-id "$SLURM_JOB_ID" --rdzv-endpoint "$head:{PORT}"',
        program,
    ]
    return "\n".join([*lines, " \\\n  ".join(words)]) + "\n"


def ray(job: Job, form: Format, file: str, *, node_chips: int = 0) -> str:
    """A Ray program: one placement-group bundle a node, in each the launcher's command with the first node as head."""
    hosts = Nodes.of(job, node_chips)
    prelude, program = form.program(file)
    exports = [line for line in (*_environment(job, form), prelude) if line]
    return _RAY.format(
        title=form.title,
        chips=job.plan.chips,
        placeholders=_PLACEHOLDERS,
        nodes=hosts.nodes,
        per_node=hosts.chips,
        port=PORT,
        before="; ".join(exports) or "true",
        start=_ray_start(form, program),
    )


def _ray_start(form: Format, program: str) -> str:
    """The shell command of one node, given its rank, the head and the port."""
    if form.starter == "python":
        text = "JAX_COORDINATOR_ADDRESS={head}:{port} JAX_NUM_PROCESSES={nodes} JAX_PROCESS_ID={rank} python3 "
        return text + program
    text = "torchrun --nnodes {nodes} --nproc-per-node {per_node} --node-rank {rank} "
    return text + "--master-addr {head} --master-port {port} " + program


def _environment(job: Job, form: Format) -> list[str]:
    """What the target reads from its environment and the plan decides."""
    plan = job.plan
    core = form.name in ("megatron", "nemo")
    if core and plan.zero < 2 and (plan.tp > 1 or plan.cp > 1):
        # Megatron Core asks for one queue before Blackwell, so that communication is issued in program order.
        return ["export CUDA_DEVICE_MAX_CONNECTIONS=1"]
    return []


_RAY = '''\
"""{title} on {chips} chips, started by Ray. {placeholders}"""

import subprocess

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

NODES, PER_NODE, PORT = {nodes}, {per_node}, {port}
BEFORE = {before!r}
START = {start!r}


@ray.remote(num_cpus=1)
def address() -> str:
    return ray.util.get_node_ip_address()


@ray.remote(num_cpus=1, num_gpus=PER_NODE)
def start(rank: int, head: str) -> int:
    words = dict(rank=rank, head=head, port=PORT, nodes=NODES, per_node=PER_NODE)
    command = START
    for name, value in words.items():
        command = command.replace("{{" + name + "}}", str(value))
    return subprocess.run(["bash", "-c", BEFORE + "; " + command], cwd="<WORKING_FOLDER>").returncode


ray.init(address="auto")
group = placement_group([{{"GPU": PER_NODE, "CPU": 2}}] * NODES, strategy="STRICT_SPREAD")
ray.get(group.ready())
places = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank) for rank in range(NODES)]
head = ray.get(address.options(scheduling_strategy=places[0]).remote())
codes = [start.options(scheduling_strategy=place).remote(rank, head) for rank, place in enumerate(places)]
raise SystemExit(max(ray.get(codes)))
'''

LAUNCHERS: dict[str, Callable[..., str]] = {"slurm": slurm, "ray": ray}


def launch(name: str, job: Job, form: Format, file: str, *, node_chips: int = 0) -> str:
    """The script of that launcher. Raises `InputError` for another name."""
    if name not in LAUNCHERS:
        hint = did_you_mean(name, LAUNCHERS, "one of " + ", ".join(LAUNCHERS))
        raise InputError.expected("a known launcher", name, where="--launch", hint=hint)
    return LAUNCHERS[name](job, form, PurePath(file).name, node_chips=node_chips)
