"""Query and edit the results store; the same program as the command ``testbed db``."""

from testbed.cli.db import main

if __name__ == "__main__":
    main()
