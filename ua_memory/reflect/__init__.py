"""Consolidation of facts into observations, refresh of pages, answers to questions."""
