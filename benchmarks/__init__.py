"""Speed, memory and loss, measured; every figure in the documentation is printed by a script in here."""
