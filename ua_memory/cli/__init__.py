"""The command line: each verb parses, calls `Memory`, prints and exits."""
