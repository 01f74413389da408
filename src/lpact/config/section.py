"""What every section of a study file shares."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lpact.validation import Section

Role = Literal["primary", "secondary", "validation_only", "stimulus_only", "diagnostic"]
EventKind = Literal["words", "sentences", "trs"]
Pooling = Literal["last", "mean", "sum", "first"]
Metric = Literal["pearson", "spearman", "r2"]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]

__all__ = ["EventKind", "Fraction", "Metric", "Name", "Pooling", "Role", "Section"]
