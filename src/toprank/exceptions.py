"""Warnings of the package."""


class DegenerateSolutionWarning(UserWarning):
    """The zero vector is optimal, or no better one was found: the model ranks nothing; the message names remedies."""


class CacheWarning(UserWarning):
    """Compiled loops cannot be kept on disk, so that every process compiles them again; the message says why."""
