"""Scores of several models under one head for the top."""

from toprank.blending.blend import TopBlend

__all__ = ["TopBlend"]
