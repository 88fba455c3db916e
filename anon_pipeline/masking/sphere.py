"""Geometry on the sphere: moves in a direction, distances, areas. Angles are in degrees, lengths in metres."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anon_pipeline.arrays import FloatArray

#: The mean radius of the Earth in metres (IUGG).
RADIUS = 6_371_008.8


def moved(
    latitude: FloatArray, longitude: FloatArray, distance: FloatArray, bearing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The points `distance` metres away along a great circle that starts at `bearing` (radians from north).

    All of shape (n,); the new longitudes are from -180 to below 180 degrees.
    """
    phi, angle = np.radians(latitude), distance / RADIUS
    sine = np.sin(phi) * np.cos(angle) + np.cos(phi) * np.sin(angle) * np.cos(bearing)
    arrived = np.arcsin(np.clip(sine, -1, 1))
    turned = np.arctan2(np.sin(bearing) * np.sin(angle) * np.cos(phi), np.cos(angle) - np.sin(phi) * np.sin(arrived))
    return np.degrees(arrived), (longitude + np.degrees(turned) + 180) % 360 - 180


def distances(
    latitude: FloatArray, longitude: FloatArray, other_latitude: FloatArray, other_longitude: FloatArray
) -> FloatArray:
    """Metres between pairs of points by the haversine formula, which is exact for small distances too."""
    phi, other = np.radians(latitude), np.radians(other_latitude)
    chord = np.sin((other - phi) / 2) ** 2
    chord = chord + np.cos(phi) * np.cos(other) * np.sin(np.radians(other_longitude - longitude) / 2) ** 2
    metres: FloatArray = 2 * RADIUS * np.arcsin(np.sqrt(np.clip(chord, 0, 1)))
    return metres


def area_uniform(uniform: FloatArray, inner: FloatArray, outer: FloatArray) -> FloatArray:
    """Distances such that points are uniform by area in the ring between two radii in metres, shape (n,).

    The area of a cap of angular radius a grows with sin^2(a / 2).
    """
    low, high = np.sin(inner / (2 * RADIUS)) ** 2, np.sin(outer / (2 * RADIUS)) ** 2
    metres: FloatArray = 2 * RADIUS * np.arcsin(np.sqrt(low + uniform * (high - low)))
    return metres


def unit_vectors(latitude: FloatArray, longitude: FloatArray) -> npt.NDArray[np.float64]:
    """Points as unit vectors, shape (n, 3): the nearest in space are the nearest on the sphere."""
    phi, lam = np.radians(latitude), np.radians(longitude)
    return np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])


def arc_of_chord(chord: FloatArray) -> FloatArray:
    """Metres on the sphere between unit vectors that are `chord` apart."""
    metres: FloatArray = 2 * RADIUS * np.arcsin(np.clip(chord / 2, 0, 1))
    return metres
