"""The explorer: results in a browser, from a server or from files, down to each sample."""
