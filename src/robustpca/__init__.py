"""Robust principal component analysis behind one scikit-learn API."""

__version__ = "0.1.0"
