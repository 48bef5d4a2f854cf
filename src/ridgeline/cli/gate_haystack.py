"""``ridgeline gate haystack``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ridgeline.cli import _talk

if TYPE_CHECKING:
    from ridgeline.core.case import Case
    from ridgeline.gate.canary.generate import Corpus, Made, Recipe

Texts = Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Text files, or folders of them.")]
Out = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the set goes, as JSON lines.")]
Length = Annotated[
    list[str] | None, typer.Option("--length", metavar="TOKENS", help="Prompt length such as 8k. Repeatable.")
]
Contexts = Annotated[int, typer.Option("--contexts", help="Contexts of each length.")]
Needles = Annotated[int, typer.Option("--needles", help="Needles of each context, 1 to 10.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed makes the same set of the same corpus.")]
Rate = Annotated[
    float | None, typer.Option("--tokens-per-char", help="Tokens a character of your tokenizer; 0.25 if not given.")
]


def command(
    corpus: Texts,
    output: Out = Path("canary.jsonl"),
    length: Length = None,
    contexts: Contexts = 100,
    needles: Needles = 10,
    seed: Seed = 0,
    tokens_per_char: Rate = None,
    as_json: _talk.AsJson = False,
) -> None:
    """Make a canary set: facts hidden at every depth of your own text, and a question for them.

    Lengths in tokens are estimated by the number of characters; nothing is downloaded.
    """
    from ridgeline.core import parse
    from ridgeline.core.errors import InputError
    from ridgeline.gate.canary.generate import Recipe, make, read_corpus
    from ridgeline.gate.canary.sets import line_of

    lengths = tuple(parse.context(text, where="--length") for text in length or ("4k", "16k"))
    recipe = Recipe(lengths, contexts, needles, seed, tokens_per_char)
    held = read_corpus(corpus)
    if any(output.exists() and Path(item.path).samefile(output) for item in held.files):
        raise InputError.expected("an output beside the corpus", "a file of it", where=f"-o, {output}")
    made = make(held, recipe)
    output.parent.mkdir(parents=True, exist_ok=True)
    rule = {"seed": seed, "tokens_per_character": recipe.rate}
    output.write_text("".join(line_of(item, **rule) for item in made.contexts), encoding="utf-8")
    _talk.hand_over(_case(held, recipe, made, output), _talk.sheet, as_json=as_json)


def _case(corpus: "Corpus", recipe: "Recipe", made: "Made", output: Path) -> "Case":
    from ridgeline.core.case import Case, Column, Table
    from ridgeline.core.quantity import Source, given, leaf
    from ridgeline.gate.canary.sets import hash_of

    case = Case("gate haystack", "a canary set")
    source, where = Source("the canary set", str(output)), "--tokens-per-char"
    unplaced = sum(len(item.unplaced) for item in made.contexts)
    case.add(
        leaf("canary.contexts", len(made.contexts), "1", "measured", source).titled("Contexts of the set"),
        leaf("canary.needles", sum(len(c.needles) for c in made.contexts), "1", "measured", source).titled("Needles"),
        leaf("canary.again", made.again, "1", "measured", source).titled("Needles drawn again: their words were taken"),
        leaf("canary.unplaced", unplaced, "1", "measured", source).titled("Needles without a single place"),
        given("canary.tokens_per_character", recipe.rate, "1", where).titled("Tokens a character"),
    )
    case.inputs = list(corpus.files)
    case.lost = [f"{item.count:,} {item.what} ({item.where})" for item in corpus.lost]
    case.decision = f"{{canary.contexts}} contexts with {{canary.needles}} needles are in {output.name}."
    case.because = (
        f"Lengths are estimated at {{canary.tokens_per_character}} tokens a character. {{canary.again}} needles were "
        f"drawn again, because the corpus or the set held their words. The set is {hash_of(made.contexts)[:12]}."
    )
    rows = []
    for length in recipe.lengths:
        inside = [item for item in made.contexts if item.id.startswith(f"{length}-")]
        tokens = [item.length for item in inside]
        rows.append((length, len(inside), min(tokens), max(tokens), sum(len(item.needles) for item in inside)))
    columns = (
        Column("length", "Asked", "token"), Column("contexts", "Contexts"), Column("least", "Shortest", "token"),
        Column("most", "Longest", "token"), Column("needles", "Needles"),
    )  # fmt: skip
    case.add_table("canary.lengths", Table("Contexts by length", columns, tuple(rows)))
    return case
