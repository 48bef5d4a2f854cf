"""Readers of Hugging Face ``config.json`` files, one file per family of models."""
