"""A small Mistral computed by NumPy: it starts without torch and transformers."""

from casewright.planner.numpy_model.load import can_compute, load_numpy_model
from casewright.planner.numpy_model.model import NumpyModel

__all__ = ["NumpyModel", "can_compute", "load_numpy_model"]
