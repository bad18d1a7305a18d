"""What one does around a fit."""
