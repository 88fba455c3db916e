"""Running the attacks on a release, a model or a foreign table, and stating what they found."""
