"""Measurements of speed, memory and loss; every figure in the documentation is printed by a script of this package."""
