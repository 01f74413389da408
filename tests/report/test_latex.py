"""Tables as LaTeX: the same cells, the right structure, and no special left alone."""

from __future__ import annotations

import re
from math import isclose

import pytest

from lpact.report.latex import latex_table
from lpact.store import frame
from lpact.tables import Column, Table, declared_tables

MIXED = Table(
    "audits/all_kinds",
    "One row a kind: 50 % of it & more.",
    ("name",),
    (
        Column("name", "str", "A name."),
        Column("n_bytes", "int", "Size.", unit="bytes"),
        Column("score", "float", "A score.", nullable=True),
        Column("p_value", "float", "A p-value.", nullable=True),
        Column("rate_hz", "float", "A rate.", unit="Hz", nullable=True),
        Column("used", "bool", "Whether."),
        Column("layers", "list[int]", "Layers."),
        Column("words", "list[str]", "Words."),
        Column("pattern", "list[float]", "Pattern."),
    ),
)
NASTY = (
    "<script>alert(1)</script>",
    "50% & more_of #1",
    "{a}$b$~c^d\\e",
    "[bracket] *star*",
    "--dash---",
    "two\nlines\tand tabs",
    "ä ρ ≥ 語 – “quoted”",
    'a "quote" and `tick` | bar',
    "",
    "x" * 400,
)
DECODED = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\textasciigrave{}": "`",
    r"$\rho$": "ρ",
    r"$\geq$": "≥",
    "''": '"',
    "{-}": "-",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
    **{f"\\{c}": c for c in "&%$#_{}"},
}
ONE_TOKEN = re.compile("|".join(re.escape(token) for token in sorted(DECODED, key=len, reverse=True)))


def decoded(cell: str) -> str:
    return ONE_TOKEN.sub(lambda match: DECODED[match.group()], cell)


def body(latex: str) -> list[list[str]]:
    """Cells of the body, after strict checks of the structure."""
    assert latex.startswith("% \\usepackage{array,booktabs,longtable}\n\\begingroup\n")
    assert latex.endswith("\\end{longtable}\n\\endgroup\n")
    assert len(re.findall(r"\\begin\{", latex)) == len(re.findall(r"\\end\{", latex)) == 1
    head, rest = latex.split("\\endfoot\n")
    assert [head.count(c) for c in ("\\toprule", "\\midrule", "\\bottomrule", "\\endhead", "\\caption")] == [
        2,
        2,
        1,
        1,
        1,
    ]
    spec = re.search(r"\\begin\{longtable\}\{@\{\}(.*)@\{\}\}\n", head)
    assert spec
    wide = r">\{\\raggedright\\arraybackslash\}p\{0\.25\\linewidth\}"
    places = re.findall(rf"{wide}|[lr]", spec.group(1))
    assert "".join(places) == spec.group(1)
    lines = rest.removesuffix("\\end{longtable}\n\\endgroup\n").splitlines()
    heads = [line for line in head.splitlines() if line.endswith(" \\\\") and "caption" not in line]
    assert len(heads) == 2
    assert heads[0] == heads[1]
    found = []
    for line in [heads[0], *lines]:
        assert line.endswith(" \\\\")
        plain = line.removesuffix(" \\\\")
        assert not plain.lstrip().startswith(("[", "*"))
        cells = re.split(r"(?<!\\)&", plain)
        if not plain.startswith("\\multicolumn"):
            assert len(cells) == len(places), line[:200]
            check_text(cells)
        found.append([cell.strip() for cell in cells])
    return found


def check_text(cells: list[str]) -> None:
    """Braces balance, dollars pair, and no special stands alone."""
    for cell in cells:
        bare = ONE_TOKEN.sub("", cell)
        bare = re.sub(r"\$-\$|\$\\times10\^\{-?\d+\}\$", "", bare)
        assert not re.search(r"[\\{}$&%#_~^<>|\"`\[\]*]", bare), cell


def row(name: str, **changes):
    return {
        "name": name,
        "n_bytes": 7,
        "score": 0.5,
        "p_value": 0.25,
        "rate_hz": 100.0,
        "used": True,
        "layers": [1, 2],
        "words": ["a", "b"],
        "pattern": [0.25, 0.5],
        **changes,
    }


def test_numbers_have_four_digits():
    rows = [
        row("a", score=-0.123456, n_bytes=-12, used=False),
        row("b", score=3.21e-7),
        row("c", score=None, n_bytes=123456789),
        row("d", score=1234567.0, pattern=[0.123456789, None, -1e-9], layers=[]),
    ]
    head, *cells = body(latex_table(frame(MIXED, rows), MIXED))
    assert head == [
        *("name", "n bytes (bytes)", "score", "p value", "rate hz (Hz)", "used", "layers"),
        *("words", "pattern"),
    ]
    columns = {name: [line[i] for line in cells] for i, name in enumerate(MIXED.column_names)}
    assert columns["n_bytes"] == ["$-$12", "7", "123456789", "7"]
    assert columns["score"] == ["$-$0.1235", r"3.21$\times10^{-7}$", "--", "1235000.0"]
    assert columns["used"] == ["no", "yes", "yes", "yes"]
    assert columns["layers"] == ["{[}1, 2{]}"] * 3 + ["{[}{]}"]
    assert decoded(columns["pattern"][-1]) == "[0.1235, –, -1e-9]"


def test_numbers_are_those_of_the_table_within_their_digits():
    values = [(-1) ** i * 1.37**i * 1e-6 for i in range(-40, 110)]
    made = frame(MIXED, [row(f"{i:03}", score=value) for i, value in enumerate(values)])
    for value, line in zip(values, body(latex_table(made, MIXED))[1:], strict=True):
        shown = line[2].replace("$-$", "-").replace("$\\times10^{", "e").replace("}$", "")
        assert isclose(float(shown), value, rel_tol=0.001), value


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_text_stays_text(text):
    made = frame(MIXED, [row(text, words=[text, "end"])])
    _, cells = body(latex_table(made, MIXED))
    expected = text.replace("\n", " ").replace("\t", " ")
    assert decoded(cells[0]) == expected
    assert decoded(cells[7]) == f"[{expected}, end]"


def test_the_caption_is_the_meaning_and_the_name():
    latex = latex_table(frame(MIXED, [row("a")]), MIXED)
    assert (
        r"\caption{One row a kind: 50 \% of it \& more (\texttt{audits/all\_kinds}).}\label{tab:audits/all_kinds}\\"
        in latex
    )


def test_an_empty_table_says_so():
    found = body(latex_table(frame(MIXED, []), MIXED))
    assert found[1:] == [[r"\multicolumn{9}{@{}l@{}}{no rows} \\".removesuffix(" \\\\")]]


def test_every_declared_table_can_be_written():
    for table in declared_tables().values():
        blank = {"str": "x_y", "int": 1, "float": 0.5, "bool": True}
        one = {c.name: blank.get(c.dtype, []) for c in table.columns}
        head, cells = body(latex_table(frame(table, [one]), table))
        assert len(head) == len(cells) == len(table.columns)
