"""Paths and templates: what they select, and what AWS says when there is nothing.

Where a test names no source: [dg:amazon-states-language-paths] and [dg:input-output-resultpath]; bounds of
regular expressions are ours.
"""

from __future__ import annotations

import pytest

from trueup.local.stepfunctions.errors import EvaluationError
from trueup.local.stepfunctions.paths import parse_path, parse_reference, place
from trueup.local.stepfunctions.scope import Scope, Variables
from trueup.local.stepfunctions.templates import TemplateError, parse_template

DATA = {"a": [{"b": 1, "c": "x"}, {"b": 2, "c": "y"}], "odd name": {"k": None}, "n": 5}


def scope(data: object = DATA) -> Scope:
    variables = Variables()
    variables.assign({"kept": {"deep": [7]}})
    return Scope(data, lambda: {"Execution": {"Id": "arn"}}, variables)


@pytest.mark.parametrize(
    ("expected", "path"),
    [
        (DATA, "$"),
        (1, "$.a[0].b"),
        (2, "$.a[-1].b"),
        (None, "$['odd name'].k"),
        ([1, 2], "$.a[*].b"),
        ([1, 2], "$..b"),
        ([{"b": 1, "c": "x"}], "$.a[0:1]"),
        ([2], "$.a[?(@.b > 1)].b"),
        (["x"], "$.a[?(@.c == 'x' && !(@.b == 2))].c"),
        ([{"b": 1}, {"b": 2}], "$.a[*]['b','missing']"),
        # Several names at the end of a definite path are one object (Jayway, whose paths these are).
        ({"b": 1, "c": "x"}, "$.a[0]['b','c']"),
        ([{"b": 1, "c": "x"}], "$['a','n'][0:1]"),
        (["x"], "$.a[?(@.c in ['x', 'z'])].c"),
        (["y"], "$.a[?(@.b nin [1])].c"),
        ([1, 2], "$.a[?(@.c size 1)].b"),
        ([2], "$.a[?(@.c contains 'y')].b"),
        ([], "$.a[?(@.c empty true)].b"),
        (["x"], "$.a[?(@.c =~ /X/i)].c"),
        (5, "$.['n']"),
        (2, "$.a.length()"),
        ("arn", "$$.Execution.Id"),
        (7, "$kept.deep[0]"),
    ],
)
def test_a_path_selects(expected: object, path: str) -> None:
    assert expected == parse_path(path).find(scope())


def test_past_the_end_of_an_array_a_template_finds_null() -> None:
    # Measured on AWS: floci-io/floci#3167. A name that is not there is an error instead.
    template = parse_template({"x.$": "$.a[10]", "y.$": "$.a[1].b"})
    assert {"x": None, "y": 2} == template.render(scope())
    with pytest.raises(EvaluationError, match="could not be found in the input"):
        parse_template({"x.$": "$.a[10].b"}).render(scope())


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ('Filter: [0] can only be applied to arrays. Current context is: {"k":1}', "$.o[0]"),
        ("The path $['n'] is null", "$.n[0]"),
        ("Index out of bounds when evaluating path $['l'][3]", "$.l[3]"),
    ],
)
def test_an_index_into_what_is_no_array_finds_nothing(said: str, path: str) -> None:
    # Jayway's ArrayPathToken, whose words AWS hands on (recorded: …[ST.INVALID_JSONPATH_IN_INPUTPATH]).
    given = scope({"o": {"k": 1}, "n": None, "l": []})
    with pytest.raises(EvaluationError) as raised:
        parse_path(path).select(given)
    assert f"Invalid path '{path}' : {said}" == raised.value.message
    if path != "$.l[3]":
        with pytest.raises(EvaluationError, match="could not be found in the input"):
            parse_template({"x.$": path}).render(given)


@pytest.mark.parametrize("path", ["$.a[5:9]", "$.missing[*]", "$.missing.list[1:5].value"])
def test_an_indefinite_path_that_finds_nothing_gives_an_empty_list(path: str) -> None:
    # Recorded on AWS: test_json_path_array_wildcard_or_slice_with_no_input.
    assert parse_path(path).find(scope()) == []


@pytest.mark.parametrize("function", ["sum", "avg", "min", "max"])
def test_an_aggregate_finds_nothing(function: str) -> None:
    # https://repost.aws/questions/QUYiQKP0XfThWEc_ahsMnLOA
    with pytest.raises(EvaluationError, match="could not be found in the input"):
        parse_template({"n.$": f"$.jobs.{function}()"}).render(scope({"jobs": [0, 1]}))


def test_a_definite_path_that_finds_nothing_names_itself_the_field_and_the_input() -> None:
    # Recorded on AWS: test_invalid_jsonpath[INVALID_JSONPATH_IN_STRING_EXPR_JSONPATH].
    with pytest.raises(EvaluationError) as raised:
        parse_template({"value.$": "$.nope"}).render(scope({"a": 0}))
    expected = (
        "The JSONPath '$.nope' specified for the field 'value.$' could not be found in the input '{\"a\":0}'"
    )
    assert expected == raised.value.message


def test_a_path_into_the_context_that_finds_nothing_names_the_context_as_its_input() -> None:
    # moto's engine, which was made to agree with AWS; recorded with a placeholder for what is the input:
    # test_invalid_jsonpath[INVALID_JSONPATH_IN_STRING_EXPR_CONTEXTPATH].
    seen = Scope({"a": 0}, lambda: {"State": {"Name": "S"}})
    for expression in ("$$.State.nope", "States.Format('{}', $$.State.nope)"):
        with pytest.raises(EvaluationError) as raised:
            parse_template({"value.$": expression}).render(seen)
        assert raised.value.message.endswith("""could not be found in the input '{"State":{"Name":"S"}}'""")


def test_an_input_path_that_finds_nothing_is_an_invalid_path() -> None:
    # Recorded on AWS: test_invalid_jsonpath[ST.INVALID_JSONPATH_IN_INPUTPATH].
    with pytest.raises(EvaluationError) as raised:
        parse_path("$.nope").select(scope())
    assert "Invalid path '$.nope' : No results for path: $['nope']" == raised.value.message


@pytest.mark.parametrize("path", ["a.b", "$.", "$[", "$['a", "$.a[?(@.b >)]", "$.a.nope()", "$.a b"])
def test_a_malformed_path_is_refused_when_the_machine_is_created(path: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_path(path)


def test_a_result_path_makes_a_copy_and_the_nodes_on_its_way() -> None:
    before = {"a": {"b": 1}}
    assert {"a": {"b": 1, "c": {"d": 2}}} == place(parse_reference("$.a.c.d"), before, 2)
    assert {"a": {"b": 1}} == before


@pytest.mark.parametrize("path", ["$.a[*]", "$$.Execution", "$..a", "$.a[-1]"])
def test_a_result_path_names_one_node_of_the_input(path: str) -> None:
    with pytest.raises(ValueError, match="reference path"):
        parse_reference(path)


def test_a_result_path_through_something_else_than_an_object_fails() -> None:
    with pytest.raises(EvaluationError) as raised:
        place(parse_reference("$.n.x"), DATA, 1)
    assert "States.ResultPathMatchFailure" == raised.value.error


def test_only_fields_that_end_in_dollar_are_evaluated() -> None:
    template = parse_template({"plain": "$.n", "deep": [{"taken.$": "$.n"}], "n": 1})
    assert {"plain": "$.n", "deep": [{"taken": 5}], "n": 1} == template.render(scope())


def test_a_field_that_ends_in_dollar_holds_a_path_or_a_function() -> None:
    with pytest.raises(TemplateError) as raised:
        parse_template({"a": {"b.$": 3}})
    assert "/a" == raised.value.location


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)+",
        "(?:a*)*",
        "((a+)b)*",
        "(a{1,9}){2,9}",
        "(a?){50}",
        "(?=a*)*",
        "(?i)a",
        "(",
        "a{1,99999999999}",
    ],
)
def test_a_regular_expression_without_bound_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"repeat|implemented|not a regular expression"):
        parse_path(f"$.a[?(@.c =~ /{pattern}/)]")


@pytest.mark.parametrize(
    ("expected", "pattern", "text"),
    [
        (True, "foo.*bar", "foo and bar"),
        (True, "(?:foo|bar)-[a-z)]+", "bar-baz"),
        (True, r"\(a+\)", "(aa)"),
        (True, "(ab)+", "abab"),
        (True, "[(a+)]+", "(a+)"),
        (True, "a{2}b{1,2}?", "aabb"),
        (False, "a.c", "abd"),
        (True, ".*", "a" * 200_000),
    ],
)
def test_other_regular_expressions_match_the_whole_text(expected: bool, pattern: str, text: str) -> None:
    found = parse_path(f"$.a[?(@.c =~ /{pattern}/)].c").find(scope({"a": [{"c": text}]}))
    assert [text] * expected == found


@pytest.mark.parametrize("pattern", ["a*a*a*a*a*b", "a?" * 30 + "b", "a|" * 30 + "b", "a{0,50}" * 6])
def test_a_text_too_long_for_what_repeats_fails_the_state(pattern: str) -> None:
    path = parse_path(f"$.a[?(@.c =~ /{pattern}/)]")
    with pytest.raises(EvaluationError, match="repeats too much for a text of 1000 characters"):
        path.find(scope({"a": [{"c": "a" * 1000}]}))
