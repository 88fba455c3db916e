"""Everything that is published: the release folder, its manifest and report, and the ledger of all releases."""
