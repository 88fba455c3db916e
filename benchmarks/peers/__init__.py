"""Side by side with other tools on one machine in one run; each tool lives in an environment of its own."""
