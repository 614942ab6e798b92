"""Save fitted models and load them again, without pickle; export them to ONNX."""

from toprank.persistence.errors import ModelFileError, ModelVersionWarning
from toprank.persistence.model_file import load, save
from toprank.persistence.onnx_export import to_onnx

__all__ = ["ModelFileError", "ModelVersionWarning", "load", "save", "to_onnx"]
