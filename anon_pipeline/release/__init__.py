"""What leaves the house: the release folder, its manifest and report, and the ledger of all releases."""
