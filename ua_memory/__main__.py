"""`python -m ua_memory` and the console script `ua-memory`: both are the command line."""

from ua_memory.cli.fast import main

if __name__ == "__main__":
    main()
