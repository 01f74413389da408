"""The inputs of a study: opened datasets, prepared recordings, and whether files changed."""
