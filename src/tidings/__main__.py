"""`python -m tidings`."""

from tidings.cli.main import main

main()
