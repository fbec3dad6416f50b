"""Calls by botocore to the endpoints of the local stack, in a bounded pool of threads."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import set_list_objects_encoding_type_url

from trueup.local.aws import proxies_to
from trueup.local.stepfunctions.integrations import function_errors, shapes
from trueup.local.stepfunctions.integrations.port import Answer, ServiceFailure
from trueup.local.stepfunctions.values import Json

THREADS = 64
"""Calls at once; a Lambda function that hangs keeps one of them until it answers."""
_LAMBDA_SECONDS = 900
_DUAL_STACK = "api.aws"
"""Where AWS's endpoints of the other kind are."""


class BotoCalls:
    """Reaches services by botocore. Calls are made once: trying again is what Retry is for."""

    def __init__(
        self, endpoints: Mapping[str, str], region: str, threads: int = THREADS, *, aws: bool = False
    ) -> None:
        """`endpoints` by botocore's names; `*` is for all others, else AWS_ENDPOINT_URL… decides.

        Where nothing does, botocore would call AWS: only with `aws` it may.
        """
        self._endpoints = endpoints
        self._aws = aws
        self._region = region
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="stepfunctions-call")
        self._threads = threads
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._session = botocore.session.Session()

    def close(self) -> None:
        """Let go of the threads; calls under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def call(self, service: str, action: str, parameters: Json) -> Answer:
        """Call an operation. Raises ServiceFailure."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._call, service, action, parameters)

    def _call(self, service: str, action: str, parameters: Json) -> Answer:
        operation = shapes.operation(service, action)
        arguments = shapes.to_api(operation.input_shape, parameters)
        if invokes := (service, operation.name) == ("lambda", "Invoke"):
            arguments = function_errors.TAIL | arguments
        try:
            raw = getattr(self._client(service), xform_name(operation.name))(**arguments)
        except ClientError as error:
            raise _refused(error) from error
        except BotoCoreError as error:
            raise ServiceFailure("SdkClientException", _unreached(error), status=0) from error
        about = raw.pop("ResponseMetadata", {})
        if "Payload" in raw:
            raw["Payload"] = shapes.read_bytes(raw["Payload"])
        status, request_id = about.get("HTTPStatusCode", 200), about.get("RequestId", "")
        if invokes:
            _name_failure(raw, request_id, keep_log=parameters.get("LogType") == "Tail")
        return Answer(raw, about.get("HTTPHeaders", {}), request_id, status)

    def _client(self, service: str) -> Any:
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._create(service)
            return self._clients[service]

    def _create(self, service: str) -> Any:
        endpoint = self._endpoints.get(service, self._endpoints.get("*"))
        config = Config(
            proxies=proxies_to(endpoint),
            connect_timeout=5,
            read_timeout=_LAMBDA_SECONDS if service == "lambda" else 60,
            retries={"total_max_attempts": 1},
            max_pool_connections=self._threads,
            inject_host_prefix=False,
            # What no machine can say has been refused; the rest is the service's to refuse, in its own words.
            parameter_validation=False,
            s3={"addressing_style": "path"},
        )
        endpoint = self._endpoints.get(service, self._endpoints.get("*"))
        made = self._session.create_client(
            service,
            region_name=self._region,
            endpoint_url=endpoint,
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "local"),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "local"),
            aws_session_token=os.environ.get("AWS_SESSION_TOKEN"),
            config=config,
        )
        if endpoint is None and not self._aws:
            self._refuse_aws(service, made.meta.endpoint_url)
        if service == "s3":
            # botocore asks for encoded keys and decodes them; the Java SDK does neither.
            for name in ("ListObjectsV2", "ListObjects", "ListObjectVersions"):
                made.meta.events.unregister(
                    f"before-parameter-build.s3.{name}", set_list_objects_encoding_type_url
                )
        return made

    def _refuse_aws(self, service: str, url: str) -> None:
        """Raises ServiceFailure where botocore has found AWS, and no endpoint in its configuration."""
        partitions = self._session.get_component("data_loader").load_data("endpoints")["partitions"]
        suffixes = {_DUAL_STACK, *(partition["dnsSuffix"] for partition in partitions)}
        host = urlsplit(url).hostname or ""
        if any(host.endswith(f".{suffix}") for suffix in suffixes):
            raise ServiceFailure(
                "SdkClientException",
                f"{service} has no endpoint, and {host} is AWS itself: give --endpoint {service}=URL, "
                "or --aws to call AWS",
                status=0,
            )


def _name_failure(answer: dict[str, Any], request_id: str, *, keep_log: bool) -> None:
    """Name the class that a function raised, and leave out the log that only this asked for."""
    log = answer.get("LogResult") if keep_log else answer.pop("LogResult", None)
    if answer.get("FunctionError"):
        answer["Payload"] = function_errors.named(answer["Payload"], log or "", request_id)


def _refused(error: ClientError) -> ServiceFailure:
    about = error.response.get("ResponseMetadata", {})
    told = error.response.get("Error", {})
    return ServiceFailure(
        told.get("Code", "Unknown"),
        told.get("Message", ""),
        status=about.get("HTTPStatusCode", 400),
        request_id=about.get("RequestId", ""),
        extended_id=about.get("HostId", ""),
        shape=told.get("QueryErrorCode"),
    )


def _unreached(error: BotoCoreError) -> str:
    """What the Java SDK says of an unknown host (recorded on AWS: test_send_message_no_such_queue)."""
    url = getattr(error, "kwargs", {}).get("endpoint_url")
    if url is None:
        return str(error)
    host = urlsplit(url).hostname or ""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as unknown:
        return f"Unable to execute HTTP request: {host}: {unknown.strerror}"
    return f"Unable to execute HTTP request: Connect to {urlsplit(url).netloc} failed"
