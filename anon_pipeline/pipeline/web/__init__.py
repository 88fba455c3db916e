"""The web servers, and the guard that checks their requests."""
