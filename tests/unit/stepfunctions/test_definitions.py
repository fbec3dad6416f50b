"""What is refused when a machine is created: each with the place and a sentence.

Where a test names no source: [dg:concepts-amazon-states-language] for what is wrong; the words are ours
then.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from trueup.local.stepfunctions.errors import DefinitionError
from trueup.local.stepfunctions.parsing import parse_definition

from .harness import machine, passing

TASK = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:000000000000:function:f"}


def problems(definition: Any) -> str:
    with pytest.raises(DefinitionError) as raised:
        parse_definition(json.dumps(definition))
    return str(raised.value)


def test_the_message_has_the_code_and_the_place_as_aws_writes_them() -> None:
    # Recorded on AWS: test_wait_timestamp_invalid[NO_Z].
    states = machine(("Wait", {"Type": "Wait", "Timestamp": "2026-12-05T21:29:29"}))
    expected = "SCHEMA_VALIDATION_FAILED: String does not match RFC3339 timestamp at /States/Wait/Timestamp"
    assert expected == problems(states)


def distributed(name: str, **config: str) -> dict[str, Any]:
    config = config or {"ExecutionType": "STANDARD"}
    return {"ProcessorConfig": {"Mode": "DISTRIBUTED", **config}, **machine((name, passing()))}


@pytest.mark.parametrize(
    ("said", "definition"),
    [
        ("INVALID_JSON_DESCRIPTION", None),
        # These sentences are AWS's own (floci-io/floci#2735 and #2968, aws-cloudformation/cfn-lint#4077).
        ("SCHEMA_VALIDATION_FAILED: Field 'Foo' is not supported at /States/A",
         machine(("A", passing(Foo=1)))),
        ("SCHEMA_VALIDATION_FAILED: Field 'Retry' is not supported at /States/A",
         machine(("A", passing(Retry=[])))),
        ("SCHEMA_VALIDATION_FAILED: These fields are required: [Next] at /States/C/Choices[0]",
         machine(("C", {"Type": "Choice", "Choices": [{"Variable": "$", "StringMatches": "T"}],
                        "Default": "B"}), ("B", passing()))),
        ("These fields are required: [Resource] at /States/A", machine(("A", {"Type": "Task"}))),
        ("These fields are required: [ItemProcessor] at /States/A", machine(("A", {"Type": "Map"}))),
        ("These fields are required: [Type] at /States/A", {"StartAt": "A", "States": {"A": {}}}),
        ("These fields are required: [StartAt, States] at /", {}),
        ("Type has to be one of Pass, Task, Choice, Wait, Succeed, Fail, Parallel, Map at /States/A/Type",
         machine(("A", {"Type": "Nap"}))),
        # Measured: floci-io/floci#2786.
        ("MISSING_TRANSITION_TARGET: Missing 'Next' target: B at /States/A/Next, MISSING_END_STATE: Workflow "
         "has no terminal state at null", machine(("A", passing(Next="B")))),
        ("Missing 'Next' target: X at /States/C/Choices[0]/Next, MISSING_TRANSITION_TARGET: Missing 'Next' "
         "target: Y at /States/C/Default",
         machine(("C", {"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "X"}],
                        "Default": "Y"}))),
        ("Missing 'Next' target: X at /States/T/Catch[0]/Next",
         machine(("T", {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "X"}]}))),
        # aws-cloudformation/cfn-lint#4264
        ("MISSING_TRANSITION_TARGET: Missing 'Next' target: X at /StartAt, MISSING_TRANSITION_TARGET: State "
         '"A" is not reachable. at /States/A',
         {**machine(("A", passing()), ("B", passing())), "StartAt": "X"}),
        ('State "B" is not reachable', machine(("A", passing(End=True)), ("B", passing()))),
        ("either Next or End", {"StartAt": "A", "States": {"A": {"Type": "Pass"}}}),
        ("MISSING_END_STATE: Workflow has no terminal state at null", machine(("A", passing(Next="A")))),
        ("QueryLanguage 'JSONata' is not implemented; supported are JSONPath",
         {**machine(("A", passing())), "QueryLanguage": "JSONata"}),
        ("The QueryLanguage is set to 'JSONPath', but field 'Output' is only supported for the 'JSONata' "
         "QueryLanguage at /States/A",
         machine(("A", passing(Output="{% 1 %}")))),
        ("HeartbeatSeconds has to be smaller",
         machine(("A", {**TASK, "TimeoutSeconds": 5, "HeartbeatSeconds": 5}))),
        ("only one of TimeoutSeconds, TimeoutSecondsPath",
         machine(("A", {**TASK, "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.t"}))),
        ("between 1 and", machine(("A", {**TASK, "TimeoutSeconds": 0}))),
        ("Resource 'arn:aws:states:::glue:startJobRun.sync' is not implemented; supported are",
         machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::glue:startJobRun.sync"}))),
        ('The field "Tablename" is not supported by Step Functions',
         machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:getItem",
                        "Parameters": {"Tablename": "t"}}))),
        # aws/aws-cdk#31448
        ("Cannot deserialize value of type `java.lang.Boolean` from String \"$.on\": only \"true\" or "
         "\"false\" recognized at /States/A/Parameters",
         machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::dynamodb:putItem",
                        "Parameters": {"TableName": "t", "Item": {"on": {"BOOL": "$.on"}}}}))),
        ("The resource provided arn:aws:states:::aws-sdk:dynamodb:noSuchThing is not recognized. The value "
         "is not a valid resource ARN, or the resource is not available in this region. "
         "at /States/A/Resource",
         machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:noSuchThing"}))),
        ("States.ALL has to stand alone",
         machine(("A", {**TASK, "Retry": [{"ErrorEquals": ["States.ALL", "X"]}]}))),
        ("and in the last entry",
         machine(("A", {**TASK, "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["X"]}]}))),
        ("exactly one of Seconds", machine(("A", {"Type": "Wait"}))),
        ("exactly one comparison", machine(("A", {"Type": "Choice", "Default": "B", "Choices": [
            {"Variable": "$.v", "Next": "B"}]}), ("B", passing()))),
        ("InputType 'PARQUET' is not implemented; supported are JSON, JSONL, CSV",
         machine(("A", {"Type": "Map", "ItemReader": {
             "Resource": "arn:aws:states:::s3:getObject", "ReaderConfig": {"InputType": "PARQUET"}},
             "ItemProcessor": distributed("B")}))),
        ("State 'A' (Pass): QueryLanguage 'JSONata' is not implemented; supported are JSONPath",
         machine(("A", passing(QueryLanguage="JSONata")))),
        ("The resource provided arn:aws:states:::lambda:invoke.sync is not recognized.",
         machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.sync"}))),
        # aws-cloudformation/cfn-lint#4085, #4078 and #4076
        ("SCHEMA_VALIDATION_FAILED: The value for the field 'id.$' must be a valid JSONPath or a valid "
         "intrinsic function call at /States/A/Assign",
         machine(("A", passing(Assign={"id.$": "States.Uuid()"})))),
        ("must be a valid JSONPath or a valid intrinsic function call at /States/A/Parameters/deep",
         machine(("A", passing(Parameters={"deep": {"id.$": "text"}})))),
        ("SCHEMA_VALIDATION_FAILED: Value must be a valid JSONPath. at /States/A/OutputPath",
         machine(("A", passing(OutputPath="Test")))),
        ("SCHEMA_VALIDATION_FAILED: Value is not a Reference Path: Reference path didn't start with '$' at "
         "/States/C/Choices[0]/Variable",
         machine(("C", {"Type": "Choice", "Choices": [
             {"Variable": "Test", "StringMatches": "T", "Next": "B"}], "Default": "B"}), ("B", passing()))),
        ("DUPLICATE_STATE_NAME: Duplicate State name: A at /States/M/ItemProcessor/States/A",
         machine(("A", passing()), ("M", {"Type": "Map", "ItemProcessor": machine(("A", passing()))}))),
        ("Duplicate State name: B at /States/P/Branches[1]/States/B",
         machine(("P", {"Type": "Parallel", "Branches": [machine(("B", passing()))] * 2}))),
        ("DUPLICATE_LABEL_NAME: Duplicate Label name: L at /States/P/Branches[1]/States/N/Label",
         machine(("P", {"Type": "Parallel", "Branches": [
             machine((name, {"Type": "Map", "Label": "L", "ItemProcessor": distributed(f"in {name}")}))
             for name in ("M", "N")]}))),
        ("These fields are required: [ExecutionType] at /States/A/ItemProcessor/ProcessorConfig",
         machine(("A", {"Type": "Map", "ItemProcessor": distributed("B", Comment="")}))),
        *(("A label has 1 to 40 characters, of those that names may have at /States/A/Label",
           machine(("A", {"Type": "Map", "Label": label, "ItemProcessor": distributed("B")})))
          for label in ("", "a/b", "a b", "l" * 41)),
        ("Value is not a Reference Path: it has to name one node at /States/A/ItemsPath",
         machine(("A", {"Type": "Map", "ItemsPath": "$.x[*].y",
                        "ItemProcessor": machine(("B", passing()))}))),
        ("'x' is given beside 'x.$' at /States/A/Parameters/deep",
         machine(("A", passing(Parameters={"deep": {"x": 1, "x.$": "$.x"}})))),
        # The words of Jackson, which reads a Task's parameters for the Java SDK (aws/aws-cdk#31448).
        *((f"SCHEMA_VALIDATION_FAILED: {said} at /States/A/Parameters",
           machine(("A", {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:query",
                          "Parameters": {"TableName": "t", **given}})))
          for said, given in (
              ("Cannot deserialize value of type `java.lang.Integer` from String \"few\": not a valid "
               "`java.lang.Integer` value", {"Limit": "few"}),
              ("Cannot deserialize value of type `java.lang.Integer` from Array value (token "
               "`JsonToken.START_ARRAY`)", {"Limit": [1]}),
              ("Cannot deserialize value of type `java.util.ArrayList<java.lang.String>` from Boolean value "
               "(token `JsonToken.VALUE_TRUE`)", {"AttributesToGet": True}),
              ("Cannot construct instance of `software.amazon.awssdk.services.dynamodb.model.AttributeValue"
               "$BuilderImpl` (although at least one Creator exists): no String-argument "
               "constructor/factory method to deserialize from String value ('x')",
               {"ExpressionAttributeValues": {":v": "x", ":later.$": "$.x"}}),
              ('The field "Sx" is not supported by Step Functions',
               {"ExpressionAttributeValues": {":v": {"Sx": "x", "S.$": "$.x"}}}),
          )),
        # [dg:supported-services-awssdk]: names are the Java SDK's, actions are in camel case.
        *((f"The resource provided arn:aws:states:::aws-sdk:{name} is not recognized",
           machine(("A", {"Type": "Task", "Resource": f"arn:aws:states:::aws-sdk:{name}"})))
          for name in ("s3:ListBuckets", "S3:listBuckets", "stepfunctions:listActivities",
                       "logs:describeLogGroups", "events:listRules", "s3:listBuckets.sync")),
        ("Field 'ToleratedFailureCount' is not supported",
         machine(("A", {"Type": "Map", "ToleratedFailureCount": 1,
                        "ItemProcessor": machine(("B", passing()))}))),
    ],
)  # fmt: skip
def test_a_definition_is_refused(said: str, definition: Any) -> None:
    if definition is None:
        with pytest.raises(DefinitionError, match=said):
            parse_definition("{")
    else:
        assert said in problems(definition)


def test_a_loop_beside_an_end_that_nothing_leads_to_misses_a_way_and_no_end() -> None:
    # Measured on AWS: floci-io/floci#2735.
    loop = machine(("A", passing(Next="B")), ("B", passing(Next="A")), ("C", passing()))
    assert 'MISSING_TRANSITION_TARGET: State "C" is not reachable. at /States/C' == problems(loop)


def test_where_there_is_no_end_nothing_else_is_said_of_what_is_not_reached() -> None:
    # Measured on AWS: floci-io/floci#2786.
    loop = machine(("A", passing(Next="B")), ("B", passing(Next="A")), ("C", passing(Next="A")))
    assert "MISSING_END_STATE: Workflow has no terminal state at null" == problems(loop)


def test_a_circle_that_nothing_leads_to_is_not_reachable() -> None:
    circle = machine(("A", passing(End=True)), ("B", passing(Next="C")), ("C", passing(Next="B")))
    assert 'State "B" is not reachable. at /States/B' in problems(circle)


def test_a_state_that_is_written_twice_is_not_read_as_the_later_one() -> None:
    twice = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}, "A": {"Type": "Fail"}}}'
    with pytest.raises(DefinitionError, match="INVALID_JSON_DESCRIPTION: Duplicate field 'A'"):
        parse_definition(twice)


@pytest.mark.parametrize(
    ("field", "given", "resource"),
    [
        ("ItemReader", "arn:aws:states:::dynamodb:scan", "arn:aws:states:::s3:getObject"),
        ("ResultWriter", "arn:aws:states:::sqs:sendMessage", "arn:aws:states:::s3:putObject"),
    ],
)
def test_only_s3_is_read_and_written_by_a_map(field: str, given: str, resource: str) -> None:
    processor = distributed("B")
    definition = machine(("A", {"Type": "Map", field: {"Resource": given}, "ItemProcessor": processor}))
    told = problems(definition)
    assert "State 'A' (Map)" in told
    assert f"'{given}' is not implemented; supported" in told
    assert resource in told


@pytest.mark.parametrize(
    ("place", "field", "definition"),
    [
        ("/", "StartAt", {"States": {"A": passing(End=True)}}),
        ("/", "StartAt", {"StartAt": "", "States": {"A": passing(End=True)}}),
        ("/States/A", "Resource", machine(("A", {"Type": "Task"}))),
        ("/States/A", "Resource", machine(("A", {"Type": "Task", "Resource": ""}))),
        ("/States/A/Catch[0]", "Next", machine(("A", {**TASK, "Catch": [{"ErrorEquals": ["States.ALL"]}]}))),
    ],
)
def test_what_is_not_there_is_told_once(place: str, field: str, definition: Any) -> None:
    expected = f"SCHEMA_VALIDATION_FAILED: These fields are required: [{field}] at {place}"
    assert expected == problems(definition)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(DefinitionError) as raised:
        parse_definition(json.dumps(machine(("A", passing(Foo=1)), ("B", passing(Bar=1)))))
    assert ["/States/A", "/States/B"] == [problem.location for problem in raised.value.problems]


def test_problems_inside_a_map_have_their_whole_place() -> None:
    inner = {"Type": "Map", "ItemProcessor": machine(("B", passing(Foo=1)))}
    assert "at /States/A/ItemProcessor/States/B" in problems(machine(("A", inner)))
