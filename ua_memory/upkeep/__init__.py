"""Keeping a bank in order: init, verify, undo, forget, purge, sync, archive, import."""
