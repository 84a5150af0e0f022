"""Query and edit the results store by ImageNet-testbed's options; ``testbed --help`` lists all commands."""

from testbed.cli.start import main

if __name__ == "__main__":
    main("db")
