"""What several releases of the same people tell together: arrays in, numbers out."""
