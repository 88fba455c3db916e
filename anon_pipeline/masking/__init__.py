"""Masking techniques: changes of single columns before and beside the grouping. No policy and no release belong here.

A technique is a small frozen model with its parameters (`catalog.TECHNIQUES` has them all, by the name a spec uses).
There are three kinds, by how they are carried out:

- `RowTechnique`: a cell's new value depends on its old one alone; it is an SQL expression that every engine runs.
- `ColumnTechnique`: needs the whole column (quantiles, swaps) or a key; it runs on Arrow arrays in memory.
- `TableTechnique`: needs several columns together; it runs on Arrow arrays in memory too.

`plan.plan_steps` refuses steps that cannot work before any of them is carried out, `execution.apply_steps` carries a
plan out in memory, `execution.sql_select` writes a plan of row techniques as one query.
"""
