"""Run by the nursery before it forks: what every worker would do anew, done once.

botocore parses the same data files for each session, which is most of what making a client costs
(0.35 s of a worker's start, 0.15 s with the files remembered). Nothing of the clients made here stays.
"""

from __future__ import annotations

import os
from typing import Any

from botocore.loaders import JSONFileLoader

from trueup.artifacts.s3 import connect_s3
from trueup.ledger.dynamo import connect_dynamodb


def remember_data_files() -> None:
    """Make botocore parse each data file once."""
    load = JSONFileLoader.load_file
    known: dict[str, Any] = {}

    def load_once(self: JSONFileLoader, file_path: str) -> Any:
        if file_path not in known:
            known[file_path] = load(self, file_path)
        return known[file_path]

    JSONFileLoader.load_file = load_once


remember_data_files()
# Children get an environment of their own; without these botocore would ask the network who it is.
os.environ |= {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
}
for client in (connect_dynamodb(), connect_s3()):
    client.close()
