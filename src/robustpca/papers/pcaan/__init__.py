"""Robust principal component analysis with adaptive neighbors (PCA-AN)."""

PAPER = "Zhang, Tong, Robust principal component analysis with adaptive neighbors, NeurIPS 2019."
