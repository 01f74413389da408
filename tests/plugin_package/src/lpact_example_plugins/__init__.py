"""One lpact plugin of every kind: each is one file here and one entry point in pyproject.toml."""
