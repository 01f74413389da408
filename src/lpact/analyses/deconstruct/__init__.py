"""Deconstruction of a brain score: what simple features explain it, and what is left for the model?"""
