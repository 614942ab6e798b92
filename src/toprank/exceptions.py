"""Warnings of the package."""


class DegenerateSolutionWarning(UserWarning):
    """The zero vector is optimal: the model exists but ranks nothing; the message names the remedies."""


class CacheWarning(UserWarning):
    """Compiled loops cannot be kept on disk, so that every process compiles them again; the message says why."""
