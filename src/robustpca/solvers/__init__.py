"""The loops: arrays in, a frozen result out."""
