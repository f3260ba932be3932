"""The format of a bank's files: bytes to records, records to lines, and edits that keep the rest."""
