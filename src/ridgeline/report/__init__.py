"""Renderers: one Case document in, a page, a memo, a card or a derivation tree out."""
