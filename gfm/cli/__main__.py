"""``python -m gfm.cli`` is ``gfm``."""

from gfm.cli import main

if __name__ == "__main__":
    main()
