"""``python -m magicore`` is the ``magicore`` command."""

from magicore.cli import main

if __name__ == "__main__":
    main()
