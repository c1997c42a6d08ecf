"""Run the command line as `python -m ordinate.cli`."""

from ordinate.cli.main import main

raise SystemExit(main())
