"""Sequential publication: releases of the same people over time."""
