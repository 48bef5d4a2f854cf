"""Golden files are written and compared as the report's are."""

from tests.report.conftest import golden

__all__ = ["golden"]
