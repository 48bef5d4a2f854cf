"""The page: one file that loads nothing, in which every number can be opened."""

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from ridgeline.report import html

Document = dict[str, Any]
VOID = {"meta", "input", "br", "hr", "img", "link"}
EVIL = "</script><img src=x onerror=alert(1)>\"'&"


class Page(HTMLParser):
    """Checks nesting, and collects tags, ids, texts and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data

    def all(self, tag: str, kind: str = "") -> list[dict[str, str]]:
        return [a for name, a in self.tags if name == tag and (not kind or kind in a.get("class", "").split())]

    @property
    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.tags if "id" in a]


@pytest.fixture(scope="module")
def text(document: Document) -> str:
    return html.render(document)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_nothing_is_loaded(page: Page) -> None:
    loading = {"src", "srcset", "data", "poster", "background", "action", "formaction"}
    assert [(tag, a) for tag, a in page.tags if loading & set(a) or tag in ("link", "iframe", "object", "base")] == []
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_styles_load_nothing(text: str) -> None:
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_ids_are_unique(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))


def test_every_link_resolves(page: Page) -> None:
    targets = {a["href"].removeprefix("#") for a in page.all("a") if a["href"].startswith("#")}
    assert targets <= set(page.ids)


def test_every_number_has_its_entry(document: Document, page: Page) -> None:
    entries = {a["id"] for a in page.all("article", "q")}
    assert {f"q-{name}" for name in document["quantities"]} <= entries
    assert {f"e0-q-{name}" for name in document["evidence"][0]["quantities"]} <= entries


def test_assumed_numbers_are_marked(page: Page) -> None:
    marked = {a["href"] for a in page.all("a", "as")}
    assert {"#q-mfu.assumed", "#q-price.chip_hour", "#q-serve.cost_per_year"} <= marked
    assert "#q-compute" not in marked


def test_the_decision_comes_first(page: Page) -> None:
    opening = [page.text.index(words) for words in ("Train 30B on 5.7T", "One conversation needs", "The choice")]
    assert opening == sorted(opening)
    parts = ["s-1", "s-2", "e0-evidence", "assumptions", "numbers", "ledger"]
    assert [item for item in page.ids if item in parts] == parts


def test_readable_without_scripts(text: str, page: Page) -> None:
    assert len(page.all("svg")) == 2
    assert next(a for a in page.all("details") if a.get("id") == "numbers").keys() >= {"open"}
    assert {a.get("aria-label") for a in page.all("div", "plot")} == {"Two curves of loss", "Stacked bars of step time"}
    assert text.count('class="data"') == 2


def test_long_tables_fold_without_scripts(page: Page) -> None:
    assert len(page.all("input", "all")) == 2  # the ranks, and the data of the laws' chart
    assert "Show all 24 rows" in page.text
    assert "the straggler" in page.text


def test_size(document: Document, text: str) -> None:
    assert len(text.encode()) < 2_500_000
    bare = copy.deepcopy(document)
    bare["charts"] = {}
    bare["evidence"][0]["charts"] = {}
    assert len(html.render(bare).encode()) < 120_000  # no chart, no Vega


def test_two_hundred_ranks_stay_below_ten_megabytes(document: Document) -> None:
    entry = {"value": 0.5, "unit": "s", "kind": "measured", "source": {"title": "a trace"}, "text": "0.500 s"}
    names = [[f"rank{rank}.part{part}" for part in range(25)] for rank in range(200)]
    columns = [{"name": f"p{part}", "title": f"Part {part}", "unit": "s"} for part in range(25)]
    table = {"title": "Ranks", "columns": columns, "rows": [[{"q": name} for name in row] for row in names]}
    quantities = {name: entry for row in names for name in row}
    case = {**document, "quantities": quantities, "tables": {"ranks": table}, "charts": {}, "sections": []}
    assert len(html.render(case).encode()) < 10_000_000


def poisoned(node: Any, key: str = "") -> Any:
    """A document whose every text carries markup."""
    if isinstance(node, dict):
        return {name: poisoned(value, name) for name, value in node.items()}
    if isinstance(node, list):
        return [poisoned(item, key) for item in node]
    fixed = {"tool", "kind", "unit", "verdict", "value", "threshold", "table", "name", "formula", "show", "inputs"}
    return node + EVIL if isinstance(node, str) and key not in fixed else node


def test_everything_is_escaped(document: Document) -> None:
    clean = copy.deepcopy(document)
    clean["charts"] = clean["evidence"][0]["charts"] = {}
    evil = poisoned(clean)
    for part in (evil, evil["evidence"][0]):
        part["quantities"] = {name: {**clean_q, "label": EVIL, "note": EVIL, "text": EVIL, "source": {"title": EVIL}}
                              for name, clean_q in part["quantities"].items()}  # fmt: skip
        part["quantities"]['x" onclick="alert(1)'] = {"value": 1, "unit": "1", "kind": "assumed"}
    page = Page(html.render(evil))
    assert page.all("img") == []
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    assert EVIL in page.text


def test_a_chart_cannot_close_its_script(document: Document) -> None:
    evil = copy.deepcopy(document)
    evil["tables"]["laws"]["rows"][0][2] = EVIL
    evil["charts"]["laws"]["alt"] = EVIL
    page = Page(html.render(evil))
    assert page.all("img") == []


def test_only_web_addresses_become_links(document: Document) -> None:
    evil = copy.deepcopy(document)
    evil["quantities"]["cluster.peak"]["source"]["url"] = "javascript:alert(1)"
    page = Page(html.render(evil))
    assert all(a["href"].startswith(("#", "https://")) for a in page.all("a"))


def test_a_chart_that_does_not_draw_says_so_and_shows_its_data(document: Document) -> None:
    broken = copy.deepcopy(document)
    broken["charts"]["laws"]["spec"] = {"layer": 3}
    text = html.render(broken)
    assert "This chart could not be drawn" in text
    assert re.search(r'<details class="data" open>', text)


def test_a_chart_loads_nothing_while_it_is_drawn(document: Document) -> None:
    remote = copy.deepcopy(document)
    remote["charts"]["laws"]["table"] = ""
    remote["charts"]["laws"]["spec"] = {"data": {"url": "https://example.org/x.csv"}, "mark": "bar"}
    assert "This chart could not be drawn" in html.render(remote)


def test_older_documents_render() -> None:
    text = html.render({"schema": 1, "tool": "plan", "quantities": {}, "findings": []})
    assert "<h1>plan</h1>" in text
    Page(text)


def test_a_derivation_is_in_the_page_once(text: str) -> None:
    assert text.count("chips × peak × mfu × days") == 1
    assert text.count('href="#q-compute"') >= 4
