"""The write protocol: scan, diff, draft, commit, swap, recovery. The only package that writes truth."""
