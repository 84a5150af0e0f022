"""Run models on eval settings; the same program as the command ``testbed eval``."""

from testbed.cli.eval import main

if __name__ == "__main__":
    main()
