"""A release as catalogues and data portals read it: Croissant, Frictionless, DCAT and a dataset card.

Everything in these files stands in the manifest or in the released tables; nothing new is told of anybody.
"""
