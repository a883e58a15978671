"""`compress`: a fitted kernel machine, ours or scikit-learn's, approximated by one whose predictions cost less."""

from .compress import compress

__all__ = ["compress"]
