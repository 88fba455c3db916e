"""Where a release is put beside its folder: a module for each kind of place, and the record of what stands where."""
