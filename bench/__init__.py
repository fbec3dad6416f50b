"""What the bookkeeping costs, beside a plain loop in the same run: `make bench`, read in `docs/speed.md`."""
