"""Alignment patterns: does a model relate to all regions as the brain does?"""
