"""Attacks on a release or a model: their success, compared with control people who are not in the release.

The code here anonymizes nothing and uses no code that anonymizes, so that a mistake there cannot hide itself here. Of
the project only `anon_pipeline.errors` may be imported.
"""

#: The most quasi-identifiers that attackers know of a person; here, since it is asked for before any work and imports.
MOST_KNOWN = 65
