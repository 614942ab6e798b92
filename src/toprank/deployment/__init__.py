"""Models for other languages and runtimes: graphs of ONNX."""

from toprank.deployment.export import to_onnx

__all__ = ["to_onnx"]
