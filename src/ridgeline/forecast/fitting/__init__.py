"""The fitting engine: objectives, Newton's method in batches, starts, resamples, profiles, optima."""
