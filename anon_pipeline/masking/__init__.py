"""Masking techniques: what is done to single columns before and beside the grouping. No policy, no release.

A technique is a small frozen model with its parameters (`catalog.TECHNIQUES` has them all, by the name a spec uses).
Three kinds differ in how they are carried out:

- `RowTechnique`: a cell's new value follows from its old one alone; it is an SQL expression that every engine runs.
- `ColumnTechnique`: needs the whole column (quantiles, swaps) or a key; it runs on Arrow arrays in memory.
- `TableTechnique`: needs several columns together; likewise.

`plan.plan_steps` refuses what cannot work before any work, `execution.apply_steps` carries a plan out in memory,
`execution.sql_select` writes a plan of row techniques as one query.
"""
