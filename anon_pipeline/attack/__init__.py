"""What an adversary achieves against a release or a model, measured beside control people the release never saw.

Nothing here anonymizes, and nothing that anonymizes is used here: of the project only `anon_pipeline.errors` may be
imported, so that one mistake cannot hide itself.
"""
