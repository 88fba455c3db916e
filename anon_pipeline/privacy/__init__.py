"""What a group of people reveals: privacy models, risk and the class statistics they act on.

A spec may state several demands, on one sensitive column or on several. Each is judged on its own column alone, against
the whole table's histogram of that column, and a release holds where every class meets every demand (conjunction). All
the column models are monotone (the `observed` kind of delta-disclosure is not), so merging classes serves them all at
once.

What the conjunction does not promise: A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam (l-diversity, TKDD
2007) show, where they discuss multiple sensitive attributes, that a class can be l-diverse in each of two columns and
not in the two together. Who learns a person's value in one column may rule out rows of the class, and the rows that
remain may agree in the other. Their remedy is to judge each sensitive column with the other ones counted among the
quasi-identifiers: then every value of the one must itself be diverse in the other, which costs far larger classes. Who
needs it publishes one sensitive column per release, or demands diversity of one column that combines the two.
"""
