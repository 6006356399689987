"""``python -m bayesmeta`` is the command ``bayesmeta``."""

import sys

from bayesmeta.cli import main

if __name__ == "__main__":
    sys.exit(main())
