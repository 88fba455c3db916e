"""The algorithm: from cells to a tree, from a tree to equivalence classes, from classes to what they show."""
