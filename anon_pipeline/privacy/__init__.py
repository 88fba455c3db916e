"""What a group of people reveals: privacy models, risk and the class statistics they act on."""
