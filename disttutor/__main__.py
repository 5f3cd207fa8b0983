"""`python -m disttutor` is the command `disttutor`."""

from disttutor.cli import main

if __name__ == "__main__":
    main()
