"""``python -m toprank.cli`` is the same as ``toprank``."""

from toprank.cli import main

if __name__ == "__main__":
    main()
