"""``python -m bayesmeta``: the command."""

import sys

from bayesmeta.cli import main

sys.exit(main())
