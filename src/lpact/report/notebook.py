"""How studies, plans, runs, claims and conclusions display in a notebook: short HTML in which data stay text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from math import ceil, isnan
from typing import TYPE_CHECKING

from lpact.analyses.explanation import Conclusion, Explanation
from lpact.report.explanation import environment, explanation_html, read_file
from lpact.wording import cell, counted, size, spoken, whole

if TYPE_CHECKING:
    from lpact.run.plan import Plan
    from lpact.study import Run, Study

MOST_CLAIMS = 10
"""Claims that a cell lists; the rest are counted."""

_TEMPLATE = """
<div class="lpact-cell">
<p><b>{{ title }}</b>{% if quiet %} <span style="opacity:.7">{{ quiet }}</span>{% endif %}</p>
{% for line in lines %}<p>{{ line }}</p>{% endfor %}
{% for caption, columns, rows in tables %}
{% if caption in folded %}<details><summary>{{ caption }}</summary>{% endif %}
<table>{% if caption not in folded %}<caption style="text-align:left">{{ caption }}</caption>{% endif %}
<thead><tr>{% for column in columns %}<th>{{ column }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in rows %}
<tr>{% for cell in row %}<td style="text-align:left">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
{% if caption in folded %}</details>{% endif %}
{% endfor %}
</div>
"""

TableRows = tuple[str, Sequence[str], Iterable[Sequence[object]]]


def _cell(
    title: str,
    quiet: str = "",
    lines: Iterable[str] = (),
    tables: Iterable[TableRows] = (),
    folded: Iterable[str] = (),
) -> str:
    template = environment().from_string(_TEMPLATE)
    html: str = template.render(title=title, quiet=quiet, lines=lines, tables=tables, folded=folded)
    return html


def study_html(study: Study) -> str:
    """A study: its datasets, models and analyses."""
    config = study.config
    parts: list[TableRows] = [
        ("Datasets", ("name", "reader"), [(own.name, own.reader) for own in config.datasets]),
        (
            "Models",
            ("name", "source", "layers"),
            [(own.name, own.source, ", ".join(map(str, own.layers))) for own in config.models],
        ),
    ]
    return _cell(
        f"Study {config.name}",
        f"seed {config.seed}, configuration {config.digest()[:12]}",
        [f"Analyses: {', '.join(config.analyses)}."],
        [part for part in parts if part[2]],
    )


def plan_html(plan: Plan) -> str:
    """A plan: claims, tasks, time, memory, disk, and what is impossible; the rows of each table are folded."""
    seconds = plan.seconds_with(1)
    time = "not known yet" if isnan(seconds) else f"about {timedelta(seconds=ceil(seconds))}"
    rows = [(name, f"{'at most ' if name in plan.at_most else ''}{whole(n)}") for name, n in plan.rows.items()]
    return _cell(
        f"Plan of {plan.config.name}",
        f"{counted(plan.n_claims, 'claim')}, {counted(plan.n_tasks, 'task')}",
        [
            *(f"{name}: {counted(len(own), 'claim')}" for name, own in plan.claims.items()),
            f"With one worker: time (h:mm:ss) {time}, memory {size(plan.memory_with(1))}, "
            f"disk {size(plan.disk_bytes)}.",
            *(f"Not possible: {what}" for what in plan.impossible),
        ],
        [
            ("Tasks", ("stage", "tasks"), [(name, whole(n)) for name, n in plan.tasks.items()]),
            ("Rows per table", ("table", "rows"), rows),
        ],
        folded=("Rows per table",),
    )


def run_html(run: Run) -> str:
    """A run: what each analysis concludes, and its first claims."""
    lines: list[str] = []
    tables: list[TableRows] = []
    for name, analysis in run.analyses.items():
        conclusion = run.conclusion(name)
        lines.append(f"{name}: {conclusion.headline}")
        lines += [_outcome(own.profile, own.code, own.meaning) for own in conclusion.outcomes]
        claims, shown = run.claims(name), analysis.claims
        columns = [*shown.key, "label", *([shown.score] if shown.score else [])]
        rows = claims.select(columns).head(MOST_CLAIMS).rows()
        caption = f"{counted(claims.height, 'claim')} of {name}"
        if claims.height > MOST_CLAIMS:
            caption += f"; the first {MOST_CLAIMS}"
        tables.append((caption, [spoken(own) for own in columns], [tuple(map(cell, row)) for row in rows]))
    return _cell(f"Run of {run.manifest.study}", str(run.root), lines, tables)


def conclusion_html(conclusion: Conclusion) -> str:
    """A conclusion: the headline, the outcome under each profile, and why."""
    outcomes = [_outcome(own.profile, own.code, own.meaning) for own in conclusion.outcomes]
    return _cell(conclusion.headline, conclusion.analysis, [*outcomes, *conclusion.why])


def _outcome(profile: str, code: str, meaning: str) -> str:
    return f"Outcome {code}{f' ({profile} gates)' if profile else ''}: {meaning}"


def explanation_cell(explanation: Explanation) -> str:
    """An explanation with the style sheet that its pictures need."""
    title = _cell(explanation.id, explanation.analysis)
    return f"<style>{read_file('explanation.css')}</style>{title}{explanation_html(explanation)}"
