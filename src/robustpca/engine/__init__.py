"""How data are touched: row blocks, views, threads."""
