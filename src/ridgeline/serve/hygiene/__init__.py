"""What prompts do to the prefix cache."""
