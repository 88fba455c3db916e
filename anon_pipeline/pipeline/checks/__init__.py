"""What is asked of stored results before anything leaves: one battery of blocking checks a file."""
