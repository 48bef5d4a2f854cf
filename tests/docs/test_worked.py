"""The worked pages run, print the published figures and leave none of them out. Freshness: tests/house/test_docs.py."""

import ast
import re
from pathlib import Path

import pytest
from scripts.docs import BLOCK, ROOT, WORKED, executed

from ridgeline.report.worked import result

PAGES = sorted(WORKED.glob("*.md"))
RESULT = re.compile(r"\*\*([^|]+)\*\* \|$", re.MULTILINE)

# Section and row -> page, and the figures of that row as the page prints them.
PUBLISHED: dict[str, tuple[str, tuple[str, ...]]] = {
    "A matmul": ("flops-of-a-step", ("134,217,728 FLOP",)),
    "A backward / forward": ("flops-of-a-step", ("2.0",)),
    "A padded matmul": ("tiles", ("32,768,000,000 FLOP", "34,359,738,368 FLOP", "95.4%")),
    "A tile efficiency": ("tiles", ("99.9%", "100%", "97.0%", "50.4%")),
    "A block params": (
        "counting-parameters",
        ("41,943,040 params", "135,266,304 params", "8,192 params", "177,217,536 params"),
    ),
    "A model params": ("counting-parameters", ("6.74e9 params", "6.48e9 params", "0.26e9 params")),
    "A embedding share: totals": (
        "counting-parameters",
        ("0.30e9 params", "0.73e9 params", "10.69e9 params", "90.09e9 params"),
    ),
    "A embedding share": ("counting-parameters", ("88.6%", "72.3%", "19.6%", "4.7%")),
    "A C = 6ND": ("where-6nd-breaks", ("3.15e23 FLOP", "5.88e23 FLOP", "6.30e24 FLOP", "7.20e23 FLOP")),
    "A tokens per parameter": ("where-6nd-breaks", ("1.7", "20.0", "214.3", "1,875.0", "1.1")),
    "A step FLOPs": (
        "flops-of-a-step",
        (
            "22,166,154,415,964,160 FLOP",
            "8,444,249,301,319,680 FLOP",
            "4,222,124,650,659,840 FLOP",
            "34,832,528,367,943,680 FLOP",
        ),
    ),
    "A identity": ("flops-of-a-step", ("382,630,046,466,048 FLOP",)),
    "A attention share": ("where-6nd-breaks", ("3.7%", "13.3%", "38.0%", "71.1%", "95.2%")),
    "A 6ND error": ("where-6nd-breaks", ("3.8%", "15.3%", "61.4%", "245.4%", "1,963.4%")),
    "A MoE params": ("moe-parameters", ("707.4e9 params", "52.1e9 params", "13.6")),
    "A training memory": ("training-memory", ("1,120.0 GB", "293.1 GB", "155.3 GB", "17.5 GB")),
    "A activations": ("training-memory", ("1,374.4 GB", "412.3 GB", "85.9 GB")),
    "A recompute": ("where-6nd-breaks", ("420e9 FLOP/token", "560e9 FLOP/token", "40.0%")),
    "A KV cache": ("kv-cache", ("21.5 GB", "2.7 GB", "0.3 GB", "687.2 GB", "85.9 GB", "10.7 GB")),
    "A concurrent requests": ("kv-cache", ("22 requests", "182 requests")),
    "A decode intensity": (
        "kv-cache",
        ("1.0 FLOP/B", "6.9 FLOP/B", "28.7 FLOP/B", "43.3 FLOP/B", "49.6 FLOP/B", "16.8%"),
    ),
    "A days": ("budget-to-model", ("11.4 days", "182.3 days")),
    "B budget": ("budget-to-model", ("1.026e24 FLOP",)),
    "B compute-optimal": ("budget-to-model", ("92.5e9 params", "1.85e12 tokens")),
    "B checks": (
        "budget-to-model",
        ("1,480 GB", "80,000 GB", "0.12", "185 GB", "3 chips", "504.0 MWh", "$60,480"),
    ),
    "B cost": ("money-and-energy", ("$1,800,000", "604,800 kWh", "$72,576", "$1,753.65/(1e21*FLOP)")),
    "B deviation": ("budget-to-model", ("9.9e23 FLOP", "96.5%")),
    "B lifetime cost": (
        "budget-to-model",
        ("7.280e23 FLOP", "1.459e25 FLOP", "1.401e27 FLOP", "1.000e24 FLOP", "4.960e24 FLOP", "4.010e26 FLOP"),
    ),
    "C ridge point": ("roofline", ("296 FLOP/B", "154 FLOP/B", "241 FLOP/B", "166 FLOP/B")),
    "C placed on the roofline": ("roofline", ("2,730.7 FLOP/B", "1.0 FLOP/B", "1.2 FLOP/B", "100%", "0.3%", "0.4%")),
    "C MFU budget": ("mfu-budget", ("35.7%", "16.1%", "21.4%", "17.9%", "8.9%")),
    "C prefill": ("latency-of-a-turn", ("5.822 s", "1.455 s", "0.364 s", "0.091 s", "0.045 s")),
    "C decode": ("latency-of-a-turn", ("21.88 s", "5.47 s", "1.368 s", "0.342 s", "0.171 s")),
    "C turn": ("latency-of-a-turn", ("27.95 s", "7.18 s", "1.98 s", "0.683 s", "0.466 s")),
    "C chips to hold": ("latency-of-a-turn", ("9 chips", "5 chips", "3 chips", "1 chip")),
    "C chips for a turn": ("latency-of-a-turn", ("64 chips", "32 chips", "16 chips", "8 chips")),
    "C KV sweep": ("kv-cache", ("12.5 ms/token", "80 token/s")),
    "C KV per token": ("kv-cache", ("70 kB/token", "192.5 kB/token", "328 kB/token", "4.7")),
    "C all-to-all": ("all-to-all-and-pipelines", ("16.1 GB", "1.288 s", "0.6 ms", "32.2 GB", "2.58 s")),
    "C pipelined prefill": ("all-to-all-and-pipelines", ("2,240 ms", "550 ms")),
    "C pipeline utilization": ("all-to-all-and-pipelines", ("73%", "91%")),
    "D law H": (
        "scaling-law",
        ("2.6198 nat", "2.4344 nat", "2.3400 nat", "2.3363 nat", "2.4160 nat", "2.5687 nat"),
    ),
    "D parabola vertex": ("scaling-law", ("1.951e9 params", "8.542e10 tokens", "43.8 token/param")),
    "D terms": ("scaling-law", ("1.6900 nat", "0.0835 nat", "0.1632 nat", "1.9366 nat")),
    "D closed-form optimum": (
        "scaling-law",
        (
            "2.280e8 params",
            "1.824e9 params",
            "1.460e10 params",
            "1.168e11 params",
            "32.1 token/param",
            "50.1 token/param",
            "78.2 token/param",
            "122.1 token/param",
            "0.4516",
        ),
    ),
    "D ladder": ("ladder-design", ("0.454", "0.546", "1.000")),
    "D Kaplan": ("scaling-law", ("5.37", "1.86")),
    "D objectives": ("ladder-design", ("2.250", "0.305852", "0.000553")),
    "D extrapolation variance": ("ladder-design", ("162.70", "6.30", "4.81", "7.22")),
    "D ladder design": (
        "ladder-design",
        (
            "1.000e18 FLOP",
            "1.968e19 FLOP",
            "3.873e20 FLOP",
            "7.622e21 FLOP",
            "1.500e23 FLOP",
            "1.580e23 FLOP",
            "1.58%",
            "5.2",
        ),
    ),
    "D schedule mismatch": ("schedule-mismatch", ("0.0000 nat", "0.0750 nat", "0.1200 nat", "0.1350 nat")),
    "D a uniform offset moves only E": ("schedule-mismatch", ("406.4", "410.7", "0.3400", "0.2800")),
    "D 0.01 nats": ("choosing-a-recipe", ("33%",)),
    "D repeats": (
        "repeats-and-serving",
        ("100.0e9 tokens", "181.9e9 tokens", "303.8e9 tokens", "440.3e9 tokens", "529.2e9 tokens", "550.7e9 tokens"),
    ),
    "D extrapolation risk": ("ladder-design", ("3.5", "9.0")),
    "D crossover": ("choosing-a-recipe", ("1.61e14 FLOP",)),
    "E sparsity, k = E": ("moe-parameters", ("1.0",)),
    "H geometry audit": ("comparable-shapes", ("11%", "2.7%", "593.5", "5%", "0.3%", "47%")),
    "I prefix caching": ("serving-levers", ("36%", "0%")),
    "I paged attention": ("serving-levers", ("2.4", "4.8")),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_prints_its_published_figure(page: Path) -> None:
    rows = [(what, row) for _, found in executed(page) for what, row in found.items() if isinstance(row, tuple)]
    assert rows
    assert [(what, row[1], result(row)) for what, row in rows if result(row) != row[1]] == []


@pytest.mark.parametrize("row", PUBLISHED)
def test_no_published_row_is_left_out(row: str) -> None:
    page, figures = PUBLISHED[row]
    printed = RESULT.findall((WORKED / f"{page}.md").read_text(encoding="utf-8"))
    assert [figure for figure in figures if figure not in printed] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_form_of_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    takeaways = [part.partition("\n\n")[0] for part in text.split("**Takeaway.**")[1:]]
    assert re.match(r"# .+\?\n", text), "the title is a question"
    assert text.count("<!-- rows -->") == len(executed(page)) == len(takeaways)
    assert [part for part in takeaways if not re.search(r"\bstops?\b", part)] == [], "say where it stops being true"
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 120


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_uses_the_library_and_nothing_else(page: Path) -> None:
    nodes = [node for code in BLOCK.findall(page.read_text(encoding="utf-8")) for node in ast.walk(ast.parse(code))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not any(isinstance(node, ast.Import) for node in nodes)
    assert [node.module for node in imports if not (node.module or "").startswith("ridgeline.")] == []
    assert [name.name for node in imports for name in node.names if name.name.startswith("_")] == []


def test_the_shelf_lists_every_page() -> None:
    shelf = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"(worked/{page.name})" not in shelf] == []
