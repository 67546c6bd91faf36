"""``python -m hermit`` is the ``hermit`` command."""

from hermit.cli.main import main

if __name__ == "__main__":
    main()
