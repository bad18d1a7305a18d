"""Mathematics: arrays in, arrays out, no estimators."""
