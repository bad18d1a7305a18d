"""Fast robust PCA on graphs (FRPCAG)."""

PAPER = (
    "Shahid, Perraudin, Kalofolias, Puy, Vandergheynst, Fast robust PCA on graphs, IEEE J. Sel. "
    "Topics Signal Process. 2016."
)
