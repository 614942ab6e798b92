"""What can be wrong with a saved model."""


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file cannot be used as a model; the message says why and what helps."""


class ModelVersionWarning(UserWarning):
    """A file holds scikit-learn objects of another version than the installed one; their scores should be compared."""
