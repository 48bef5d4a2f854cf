"""Quantities, findings, cases, units, errors, plug-ins: no file formats, no clocks."""
