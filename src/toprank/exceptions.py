"""Warnings of the package."""


class DegenerateSolutionWarning(UserWarning):
    """The zero vector is optimal: the model exists but ranks nothing; the message names the remedies."""
