"""Save fitted models and load them again, without pickle; export them to ONNX."""

from typing import TYPE_CHECKING, Any

from toprank.persistence.errors import ModelFileError, ModelVersionWarning
from toprank.persistence.model_file import load, save

if TYPE_CHECKING:
    from toprank import to_onnx

__all__ = ["ModelFileError", "ModelVersionWarning", "load", "save", "to_onnx"]


def __getattr__(name: str) -> Any:
    """The export, which stands on rooms above this one."""
    if name == "to_onnx":
        from toprank import to_onnx

        return to_onnx
    raise AttributeError(f"module 'toprank.persistence' has no attribute {name!r}")
