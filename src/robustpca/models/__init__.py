"""What a person fits: one file a family."""
