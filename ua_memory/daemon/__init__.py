"""The daemon: one process a bank that keeps index and model warm and runs commands on callers' behalf."""
