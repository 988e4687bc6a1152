"""`python -m twofold` is the command `twofold`."""

from twofold.cli.app import main

if __name__ == "__main__":  # a worker process imports this again
    main()
