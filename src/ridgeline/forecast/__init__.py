"""Forecast: a ladder of small runs in, the loss of the large one out, with an interval that covers, or a refusal."""
