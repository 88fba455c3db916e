"""Automation: jobs, schedules and sensors, alerts, retention and pruning."""
