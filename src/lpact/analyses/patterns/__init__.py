"""Alignment patterns: does a model relate to all regions as a region of the brain does?"""
