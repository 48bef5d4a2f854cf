"""Launch scripts: valid in their language, of the right size, and free of anybody's site."""

import ast
import re
import subprocess

import pytest
from tests.plan.formats.jobs import job

from ridgeline.core.errors import InputError
from ridgeline.plan.formats._common import Format, formats
from ridgeline.plan.launch import launch

FORMATS = list(formats().values())
each = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
MADE = job(tp=8, dp=64, zero=1)


@each
def test_slurm(form: Format) -> None:
    text = launch("slurm", MADE, form, f"job{form.suffix}")
    shell = re.sub(r"<[A-Z_:]+>", "placeholder", text)
    assert subprocess.run(["bash", "-n"], input=shell, text=True, capture_output=True, check=True).stderr == ""
    assert "#SBATCH --nodes=64\n" in text
    assert "#SBATCH --gpus-per-node=8\n" in text
    assert "#SBATCH --account=<ACCOUNT>" in text
    assert ("torchrun" in text) == (form.starter == "torchrun")
    assert ("--ntasks-per-node=8" in text) == (form.starter == "python")


@each
def test_ray(form: Format) -> None:
    text = launch("ray", MADE, form, f"job{form.suffix}")
    start, before = (_said(ast.parse(text), name) for name in ("START", "BEFORE"))
    assert "NODES, PER_NODE, PORT = 64, 8, 29500" in text
    assert "{rank}" in start
    assert re.sub(r"<[A-Z_]+>", "x", f"{before}; {start}").count("'") % 2 == 0
    assert "<WORKING_FOLDER>" in text


def _said(tree: ast.Module, name: str) -> str:
    """The text that a module assigns to a name."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    value = next(n.value for n in assigned if isinstance(n.targets[0], ast.Name) and n.targets[0].id == name)
    return str(ast.literal_eval(value))


def test_megatron_sources_its_arguments() -> None:
    text = launch("slurm", MADE, formats()["megatron"], "folder/job.megatron.sh")
    assert "source job.megatron.sh\n" in text
    assert 'pretrain_gpt.py "${MEGATRON_ARGS[@]}"' in text
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1" in text
    free = launch("slurm", job(dp=64, zero=3), formats()["megatron"], "job.sh")
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in free, "Megatron-FSDP refuses it"


def test_hosts_smaller_than_the_domain() -> None:
    form = formats()["torchtitan"]
    assert "--nodes=128\n" in launch("slurm", MADE, form, "job.toml", node_chips=4)
    assert "--nodes=1\n" in launch("slurm", job(dp=4), form, "job.toml")
    with pytest.raises(InputError, match="a divisor of the 512 chips"):
        launch("slurm", MADE, form, "job.toml", node_chips=7)
    with pytest.raises(InputError, match="a known launcher, got 'slrum'") as caught:
        launch("slrum", MADE, form, "job.toml")
    assert "slurm" in caught.value.hint
    with pytest.raises(InputError, match="the chips of a node"):
        launch("ray", MADE.without(["node_size"]), form, "job.toml")
