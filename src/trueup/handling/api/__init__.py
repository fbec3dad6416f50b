"""The HTTP API: one Lambda behind an HTTP API with IAM authorisation, payload format 2.0.

A route is a row of `routes.ROUTES`: what it is called, what it takes, what it answers, and the function that
does it. The OpenAPI document is made from the same rows.
"""

from __future__ import annotations

from trueup.handling.api.answering import Api
from trueup.handling.api.services import Services

__all__ = ["Api", "Services"]
