"""Model sources: one file each."""

BUILT_IN = {
    "matrix": "files:Matrix",
    "precomputed": "files:Precomputed",
    "transformers": "transformers:Transformers",
    "word_vectors": "files:WordVectors",
}
