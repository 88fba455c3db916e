"""The web servers, and the guard that stands before each of them."""
