"""Models: the guide's predictions for the grouping, and the accuracy of models before and after anonymization."""
