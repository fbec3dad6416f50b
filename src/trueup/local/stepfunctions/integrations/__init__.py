"""What Task states call: one small port, and one module per service behind it."""
