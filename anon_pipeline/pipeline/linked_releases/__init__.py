"""What a candidate tells beside standing releases of the same people under other names: read, asked and said."""
