"""Turns a table of people into a release that may be published, and proves it."""
