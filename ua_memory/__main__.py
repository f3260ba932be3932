"""`python -m ua_memory` and the console script `ua-memory`: both are the command line."""

from __future__ import annotations

import sys

from ua_memory.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
