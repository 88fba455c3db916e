"""Destinations of releases beside their folder: a module for each kind of place, and the record of all copies."""
