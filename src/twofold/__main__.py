"""`python -m twofold` is the command `twofold`."""

from twofold.cli.app import main

main()
