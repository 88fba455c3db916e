"""Privacy models, risk, and the class statistics that both work on: how much a group of people reveals.

A spec may state several demands, on one sensitive column or on several. Each demand is judged on its own column alone,
against the whole table's histogram of that column. A release holds if every class meets every demand (conjunction). All
models on a column are monotone, except the `observed` kind of delta-disclosure, so merging classes serves all of them
at once.

What the conjunction does not promise: A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam (l-diversity, TKDD
2007) show, where they discuss multiple sensitive attributes, that a class can be l-diverse in each of two columns and
not in the two together. An attacker who learns a person's value in one column may rule out rows of the class, and the
remaining rows may agree in the other column. Their remedy is to judge each sensitive column with the others counted
among the quasi-identifiers: then every value of one column must itself be diverse in the other, which needs far larger
classes. If this is needed, publish one sensitive column per release, or demand diversity of one column that combines
the two.
"""
