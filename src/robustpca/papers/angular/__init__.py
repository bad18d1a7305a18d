"""Angular embedding: a new angular robust principal component analysis (AE and TAE)."""

PAPER = "Liu, Yu, Angular embedding: a new angular robust principal component analysis, AAAI 2021."
