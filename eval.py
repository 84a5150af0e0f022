"""Run models on eval settings, as ``testbed run`` does, by ImageNet-testbed's options."""

from testbed.cli.start import main

if __name__ == "__main__":
    main("eval")
