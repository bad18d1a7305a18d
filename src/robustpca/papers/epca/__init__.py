"""Enhanced principal component analysis under a collaborative-robust framework (EPCA)."""

PAPER = (
    "Zhang, Zhang, Li, Enhanced principal component analysis under a collaborative-robust "
    "framework, 2021."
)
