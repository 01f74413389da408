"""Model sources: one file each."""

BUILT_IN = {
    "precomputed": "precomputed:Precomputed",
    "transformers": "transformers:Transformers",
}
