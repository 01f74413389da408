"""Model sources: one file each."""

BUILT_IN = {
    "matrix": "files:Matrix",
    "precomputed": "precomputed:Precomputed",
    "transformers": "transformers:Transformers",
    "word_vectors": "files:WordVectors",
}
