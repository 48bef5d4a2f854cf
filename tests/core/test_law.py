"""A law file that people write, and what is refused where. What every law must satisfy is in tests/contract."""

from pathlib import Path

import pytest

from ridgeline.core.catalog import law
from ridgeline.core.errors import InputError

HEAD = 'name = "own"\nkind = "power"\npredicts = "tokens"\nparams = "total"\n[source]\ntitle = "notes"\n'


def own_file(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text)
    return str(path)


def test_a_power_law(tmp_path: Path) -> None:
    own = law(own_file(tmp_path, HEAD + "[constants]\na = 0.3\nb = 0.5\n[fitted]\ncompute = [1e18, 1e22]\n"))
    assert (own.slug, own.kind, own.predicts) == ("own", "power", "tokens")
    low, high = own.fitted["compute"]
    assert (low.base, high.base, high.name) == (1e18, 1e22, "law.own.fitted.compute.high")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("power", "guess"), r"Expected one of parametric, .* got 'guess', at .*own\.toml: \$\.kind"),
        (HEAD.replace("tokens", "loss") + "[constants]\na = 1\nb = 1", r"\$\.predicts"),
        (HEAD + "[constants]\na = 1", r"Expected the constant b of a power law"),
        (HEAD + "[constants]\na = 1\nb = inf", r"Expected a finite number, got inf, at .*\$\.constants\.b"),
        (HEAD, r"Expected a table, got None, at .*\$\.constants"),
        (HEAD + "[constants]\na = 1\nb = 1\n[fitted]\ncompute = [1e22, 1e18]", r"Expected the low end first"),
        (HEAD + "[constants]\na = 1\nb = 1\n[fitted]\ncompute = 3", r"Expected a low and a high end"),
        (HEAD + "[constants]\na = 1\nb = 1\n[fitted]\nflops = [1, 2]", r"\$\.fitted\.flops"),
        (HEAD.replace("title", "titel"), r"Expected a text, got None, at .*\$\.source\.title"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        law(own_file(tmp_path, text))
