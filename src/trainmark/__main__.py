"""`python -m trainmark`: the same command where no script was installed."""

from trainmark.cli.main import main

main()
