"""The command line: each verb parses, calls `Memory`, formats what comes back, and exits."""
