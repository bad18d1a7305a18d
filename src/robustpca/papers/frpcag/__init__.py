"""Scores, preparations and pictures that tables need beyond `robustpca.metrics`, by subject."""
