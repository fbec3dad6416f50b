"""How a service's refusal becomes the error of a state: names and causes as the Java SDKs made them."""

from __future__ import annotations

from trueup.local.stepfunctions.errors import StateError
from trueup.local.stepfunctions.integrations import shapes
from trueup.local.stepfunctions.integrations.catalogue import Service
from trueup.local.stepfunctions.integrations.port import ServiceFailure


def optimized_error(service: Service, failure: ServiceFailure) -> StateError:
    """The error of an optimized integration.

    What the service's model names keeps its name, with Exception at its end; anything else takes the
    generic one (aws-facts section 2.4: `ECS.AmazonECSException`).
    Recorded on AWS: test_put_item_no_such_table, test_start_execution_no_such_arn,
    test_publish_base_error_topic_arn.
    """
    if failure.status == 0:
        return StateError(f"{service.prefix}.SdkClientException", failure.message)
    cause = (
        f"{failure.message} (Service: {service.java}; Status Code: {failure.status}; "
        f"Error Code: {failure.code}; Request ID: {failure.request_id}; Proxy: null)"
    )
    return StateError(f"{service.prefix}.{_exception(service, failure)}", cause)


def sdk_error(service: Service, failure: ServiceFailure) -> StateError:
    """The error of an `aws-sdk:` integration (recorded: test_sfn_send_task_outcome_with_no_such_token)."""
    if failure.status == 0:
        return StateError(f"{service.prefix}.SdkClientException", failure.message)
    extended = f", Extended Request ID: {failure.extended_id}" if failure.extended_id else ""
    cause = (
        f"{failure.message} (Service: {service.prefix}, Status Code: {failure.status}, "
        f"Request ID: {failure.request_id}{extended}) (SDK Attempt Count: 1)"
    )
    return StateError(f"{service.prefix}.{_exception(service, failure)}", cause)


def _exception(service: Service, failure: ServiceFailure) -> str:
    name = shapes.error_name(service.boto, failure.shape)
    if name is None:
        return service.generic
    return name if name.endswith("Exception") else f"{name}Exception"
