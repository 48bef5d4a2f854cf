"""The review of a design before it is launched: claims, comparable runs, the pilot, the expectation."""
