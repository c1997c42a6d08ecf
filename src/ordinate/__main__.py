"""Run the command line as `python -m ordinate`."""

from ordinate.cli.main import main

raise SystemExit(main())
