"""Targets that refuse a task which should be dead, one module a store.

Nothing else in trueup knows the stores' own languages. `postgres` needs the extra of that name.
"""
