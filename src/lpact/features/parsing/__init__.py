"""Parses: Universal Dependencies of a stimulus' words, from its table or from an installed pipeline."""

from lpact.features.parsing.parse import WordParse, read_parse

__all__ = ["WordParse", "read_parse"]
