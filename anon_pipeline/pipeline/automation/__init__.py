"""What happens without a person: jobs, schedules and sensors, alerts, retention and pruning."""
