"""Descriptors of a release for catalogues and data portals: Croissant, Frictionless, DCAT and a dataset card.

Everything in these files is also in the manifest or in the released tables; they reveal nothing new about anybody.
"""
