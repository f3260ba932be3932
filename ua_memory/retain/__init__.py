"""Conversations and texts into facts: the flush, its queue, extraction, and the check that nothing is made up."""
