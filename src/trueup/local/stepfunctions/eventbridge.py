"""Status changes on their way to EventBridge, in the order in which they happened.

Nobody may put events of `aws.` sources on a bus, and a faithful emulator refuses them too.
Its rules are asked for then, and what they match is delivered to their targets from here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from trueup.local.stepfunctions.integrations.port import Calls, ServiceFailure
from trueup.local.stepfunctions.outbox import Outbox
from trueup.local.stepfunctions.values import Json, to_text

log = logging.getLogger(__name__)

_REFUSED = "NotAuthorizedForSourceException"


class EventBridgeSink:
    """Takes events on the engine's loop without holding it up."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._rules = _Rules(calls)
        self._may_put = True
        self._events = Outbox(self._deliver, "status changes", "EventBridge")

    def __call__(self, event: dict[str, Json]) -> None:
        """Take an event."""
        self._events.put(event)

    async def close(self) -> None:
        """Send what is waiting, for a second at most, and stop."""
        await self._events.close()

    async def _deliver(self, events: list[dict[str, Json]]) -> None:
        try:
            await self._put(events)
        except ServiceFailure as failure:
            log.warning("EventBridge did not take %d status changes: %s", len(events), failure)

    async def _put(self, events: list[dict[str, Json]]) -> None:
        while events and self._may_put:
            answer = await self._calls.call("events", "putEvents", {"Entries": [_entry(events[0])]})
            entries = answer.output.get("Entries", [])
            self._may_put = not any(entry.get("ErrorCode") == _REFUSED for entry in entries)
            if self._may_put:
                events = events[1:]
        if events:
            await self._rules.deliver(events)


def _entry(event: dict[str, Json]) -> dict[str, Json]:
    return {
        "Source": event["source"],
        "DetailType": event["detail-type"],
        "Detail": to_text(event["detail"]),
        "Resources": event["resources"],
        "Time": event["time"],
    }


def _may_match(rule: Mapping[str, Any], event: dict[str, Json]) -> bool:
    """False where the rule plainly names other sources, which saves asking."""
    sources = json.loads(rule.get("EventPattern") or "{}").get("source")
    return not sources or event["source"] in sources or any(not isinstance(one, str) for one in sources)


class _Rules:
    """The rules of the default bus. The emulator says which match, so that patterns mean what it means."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def deliver(self, events: list[dict[str, Json]]) -> None:
        """Hand events to the targets of all enabled rules that match them. Raises ServiceFailure."""
        answer = await self._calls.call("events", "listRules", {})
        rules = [rule for rule in answer.output.get("Rules", []) if rule.get("State") != "DISABLED"]
        for event in events:
            for rule in rules:
                if _may_match(rule, event) and await self._matches(rule, event):
                    await self._to_targets(rule["Name"], event)

    async def _matches(self, rule: Mapping[str, Any], event: dict[str, Json]) -> bool:
        pattern = rule.get("EventPattern")
        if not pattern:
            return False
        parameters = {"EventPattern": pattern, "Event": to_text(event)}
        answer = await self._calls.call("events", "testEventPattern", parameters)
        return bool(answer.output.get("Result"))

    async def _to_targets(self, rule: str, event: dict[str, Json]) -> None:
        answer = await self._calls.call("events", "listTargetsByRule", {"Rule": rule})
        for target in answer.output.get("Targets", []):
            try:
                await self._to_target(target, event)
            except ServiceFailure as failure:
                log.warning("rule %s did not reach %s: %s", rule, target["Arn"], failure)

    async def _to_target(self, target: Mapping[str, Any], event: dict[str, Json]) -> None:
        arn, text = target["Arn"], target.get("Input") or to_text(event)
        service = arn.split(":")[2]
        if "InputTransformer" in target or "InputPath" in target:
            log.warning("%s: InputTransformer and InputPath are not implemented; the event goes whole", arn)
        if service == "lambda":
            asked = {"FunctionName": arn, "InvocationType": "Event", "Payload": text}
            await self._calls.call("lambda", "invoke", asked)
        elif service == "sqs":
            url = await self._calls.call("sqs", "getQueueUrl", {"QueueName": arn.rpartition(":")[2]})
            asked = {"QueueUrl": url.output["QueueUrl"], "MessageBody": text}
            await self._calls.call("sqs", "sendMessage", asked)
        elif service == "sns":
            await self._calls.call("sns", "publish", {"TopicArn": arn, "Message": text})
        elif service == "states":
            asked = {"StateMachineArn": arn, "Input": text}
            await self._calls.call("stepfunctions", "startExecution", asked)
        else:
            log.warning(
                "%s: targets of this kind are not implemented; supported are lambda, sqs, sns, states", arn
            )
