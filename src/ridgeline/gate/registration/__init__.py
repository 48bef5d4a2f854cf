"""Margins, slices and looks, written down before the data is seen."""
