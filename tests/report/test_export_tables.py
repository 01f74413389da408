"""Tables as CSV and LaTeX: the same cells, the right structure, and no special left alone."""

from __future__ import annotations

import re
from math import isclose

import polars as pl
import pytest

from lpact.errors import RunError, TableError
from lpact.report import export_tables as module
from lpact.report.export_tables import export_tables, latex_table
from lpact.store import Provenance, build_manifest, frame, write_manifest, write_table
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
ONE_TOKEN = re.compile(
    "|".join(re.escape(token) for token in sorted(DECODED, key=len, reverse=True))
)


def decoded(cell: str) -> str:
    return ONE_TOKEN.sub(lambda match: DECODED[match.group()], cell)


def body(latex: str) -> list[list[str]]:
    """Cells of the body, after strict checks of the structure."""
    assert latex.startswith("% \\usepackage{array,booktabs,longtable}\n\\begingroup\n")
    assert latex.endswith("\\end{longtable}\n\\endgroup\n")
    assert len(re.findall(r"\\begin\{", latex)) == len(re.findall(r"\\end\{", latex)) == 1
    head, rest = latex.split("\\endfoot\n")
    assert [
        head.count(c) for c in ("\\toprule", "\\midrule", "\\bottomrule", "\\endhead", "\\caption")
    ] == [2, 2, 1, 1, 1]
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


def test_numbers_have_their_column_s_decimals():
    rows = [
        row("a", score=-0.123456, p_value=1.0, n_bytes=-12, used=False),
        row("b", score=0.5, p_value=3.2e-7, rate_hz=None),
        row("c", score=None, p_value=0.04999, n_bytes=123456789),
        row("d", score=-0.00001, p_value=0.0, rate_hz=25000.0),
        row("e", score=12345678.9, p_value=5e-324, pattern=[0.123456789, None, -1e-9], layers=[]),
    ]
    head, *cells = body(latex_table(frame(MIXED, rows), MIXED))
    assert head == [
        *("name", "n bytes (bytes)", "score", "p value", "rate hz (Hz)", "used", "layers"),
        *("words", "pattern"),
    ]
    columns = {name: [line[i] for line in cells] for i, name in enumerate(MIXED.column_names)}
    assert columns["n_bytes"] == ["$-$12", "7", "123456789", "7", "7"]
    assert columns["score"] == [
        "$-$0.1235",
        "0.5000",
        "--",
        r"$-$1.00$\times10^{-5}$",
        r"1.23$\times10^{7}$",
    ]
    assert columns["p_value"] == ["1.000", r"3.20$\times10^{-7}$", "0.050", "0.000", "5e-324"]
    assert columns["rate_hz"] == ["100", "--", "100", "25000", "100"]
    assert columns["used"] == ["no", "yes", "yes", "yes", "yes"]
    assert columns["layers"] == ["{[}1, 2{]}"] * 4 + ["{[}{]}"]
    assert decoded(columns["pattern"][-1]) == "[0.1235, –, -1e-9]"


def test_numbers_are_those_of_the_table_within_their_digits():
    values = [(-1) ** i * 1.37**i * 1e-6 for i in range(-40, 110)]
    made = frame(MIXED, [row(f"{i:03}", score=value) for i, value in enumerate(values)])
    cells = body(latex_table(made, MIXED))[1:]
    decimals = {len(c[2].split(".")[1]) for c in cells if "times" not in c[2] and "." in c[2]}
    assert len(decimals) <= 1
    for value, line in zip(values, cells, strict=True):
        shown = line[2].replace("$-$", "-").replace("$\\times10^{", "e").replace("}$", "")
        assert isclose(float(shown), value, rel_tol=0.006, abs_tol=0.5), value
        assert float(shown) != 0


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


def test_files_are_copies_of_the_twin_and_the_same_text(tmp_path):
    made = frame(MIXED, [row(text) for text in sorted(NASTY)])
    write_table(made, MIXED, tmp_path / "run")
    files = export_tables(tmp_path / "run", [MIXED], tmp_path / "out")
    assert files == [tmp_path / "out/audits/all_kinds.csv", tmp_path / "out/audits/all_kinds.tex"]
    assert files[0].read_bytes() == (tmp_path / "run/audits/all_kinds.csv").read_bytes()
    assert files[1].read_text(encoding="utf-8") == latex_table(made, MIXED)
    only = export_tables(tmp_path / "run", [MIXED], tmp_path / "other", formats=["latex"])
    assert [path.name for path in only] == ["all_kinds.tex"]
    assert only[0].read_bytes() == files[1].read_bytes()
    assert not list((tmp_path / "other").rglob("*.csv"))


def test_slices_do_not_show(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_SLICE", 7)
    made = frame(MIXED, [row(f"{i:02}", score=i / 3) for i in range(40)])
    write_table(made, MIXED, tmp_path)
    (file,) = export_tables(tmp_path, [MIXED], tmp_path / "out", ["latex"])
    monkeypatch.setattr(module, "ROWS_PER_SLICE", 1000)
    assert file.read_text(encoding="utf-8") == latex_table(made, MIXED)
    assert [line[0] for line in body(latex_table(made, MIXED))[1:]] == made["name"].to_list()


def test_a_table_that_has_changed_since_is_refused(tmp_path):
    write_table(frame(MIXED, [row("a")]), MIXED, tmp_path)
    provenance = Provenance(study="s", seed=1, config={"datasets": []}, inputs=())
    write_manifest(tmp_path, build_manifest(tmp_path, provenance))
    assert len(export_tables(tmp_path, [MIXED], tmp_path / "out")) == 2
    csv = tmp_path / "audits/all_kinds.csv"
    csv.write_text(csv.read_text(encoding="utf-8").replace("0.5", "0.6"), encoding="utf-8")
    with pytest.raises(RunError, match="has changed"):
        export_tables(tmp_path, [MIXED], tmp_path / "out")


def test_what_is_wrong_is_an_error(tmp_path):
    with pytest.raises(RunError, match="is missing"):
        export_tables(tmp_path, [MIXED], tmp_path / "out")
    write_table(frame(MIXED, [row("a")]), MIXED, tmp_path)
    with pytest.raises(TableError, match="'score'"):
        latex_table(frame(MIXED, [row("a")]).with_columns(score=pl.lit("x")), MIXED)
    path = tmp_path / "audits/all_kinds.parquet"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(RunError, match="damaged"):
        export_tables(tmp_path, [MIXED], tmp_path / "out", ["latex"])
    assert not list((tmp_path / "out").rglob("*.tex"))
