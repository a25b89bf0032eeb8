"""`python -m dashboard` is `tidegauge`."""

from dashboard.cli.main import main

main()
