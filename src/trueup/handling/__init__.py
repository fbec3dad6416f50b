"""What the Lambdas do: one module a verb, JSON in and JSON out, each safe to call twice.

Nothing here knows AWS but `wiring`, which puts the real things in place.
"""
