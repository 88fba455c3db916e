"""What a model sees in the table: the guide's predictions, and how accurate models are before and after."""
