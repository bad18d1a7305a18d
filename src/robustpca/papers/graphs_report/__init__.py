"""The report of a student project on robust PCA on graphs; its tables are called ``report_...``."""

PAPER = (
    "Ezzechi, Lutt, Robust principal component analysis on graphs, report of a project at ENS "
    "Paris-Saclay."
)
