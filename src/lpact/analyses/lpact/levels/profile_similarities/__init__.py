"""Profile similarities: one file each."""

BUILT_IN = {
    "cosine": "cosine:CosineProfile",
    "pearson": "pearson:PearsonProfile",
    "spearman": "spearman:SpearmanProfile",
}
