"""What ECS tells EventBridge reaches the targets of rules, on an emulator that refuses `aws.` sources."""

from __future__ import annotations

import json

from trueup.local.aws import client, ministack
from trueup.local.ecs import Options, serve

from .test_ecs_api import NETWORK, Stack, images, wait_until


def test_a_rule_hears_that_a_task_has_stopped() -> None:
    """Developer guide, "Amazon ECS task state change events": the page's pattern, for tasks that stopped."""
    pattern = {
        "source": ["aws.ecs"],
        "detail-type": ["ECS Task State Change"],
        "detail": {"lastStatus": ["STOPPED"]},
    }
    with ministack(("events", "sqs")) as aws:
        queues, rules = client("sqs", aws), client("events", aws)
        url = queues.create_queue(QueueName="stopped")["QueueUrl"]
        attributes = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        rules.put_rule(Name="other", EventPattern=json.dumps({"source": ["aws.states"]}))
        rules.put_rule(Name="stopped", EventPattern=json.dumps(pattern))
        for rule in ("other", "stopped"):
            rules.put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": attributes["QueueArn"]}])
        with serve(Options(images=images(), events=aws)) as ecs:
            stack = Stack(ecs)
            stack.register("told")
            override = {"containerOverrides": [{"name": "main", "command": ["exit 3"]}]}
            told = stack.api.run_task(taskDefinition="told", overrides=override, networkConfiguration=NETWORK)
            heard: list[str] = []

            def hears() -> bool:
                answer = queues.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
                heard.extend(message["Body"] for message in answer.get("Messages", []))
                return bool(heard)

            wait_until(hears)
    (event,) = [json.loads(body) for body in heard]
    assert [told["tasks"][0]["taskArn"]] == event["resources"]
    assert ("STOPPED", 3) == (event["detail"]["lastStatus"], event["detail"]["containers"][0]["exitCode"])
