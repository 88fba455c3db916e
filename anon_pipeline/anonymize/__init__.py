"""The algorithm: it fits a tree on cells, makes equivalence classes of the leaves, and recodes each class."""
