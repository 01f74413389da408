"""Similarities ρ of patterns over units: how level 2 compares a model's pattern with a unit's."""

BUILT_IN = {
    "cosine": "similarity:Cosine",
    "pearson": "similarity:Pearson",
    "spearman": "similarity:Spearman",
}
