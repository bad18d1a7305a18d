"""What methods are put together from: losses, weightings, centres, starts, graphs."""
