"""What a person, a program or a tired finger may send, and what is said about it."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.http import QueryDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog import countries
from catalog.visible import is_plain_line
from sizing.forms import MAX_LOTS, InvalidInput, PreferencesForm, nested_question_from, question_from, workload_from
from sizing.permalinks import canonical_query
from tests import factories

GOOD = {"task": "run", "model": "llama-3.1-8b"}
HUGE = "1" + "0" * 30
NOT_NUMBERS = [
    "7.5",
    "7 days",
    "abc",
    "1e3",
    "4,096",
    "4 096",
    "0x10",
    "４０９６",
    "٤",
    "½",
    "7\x00",
    "\x00",
    "NaN",
    "∞",
    "--1",
]
NOT_AMOUNTS = [
    "abc",
    "1e3",
    "$300",
    "3 00",
    "1.234,50",
    "٣",
    "３００",
    "3\x00",
    "NaN",
    "Infinity",
    ".5",
    "5.",
    "1_000",
    "--1",
]


@pytest.fixture(autouse=True)
def _model(db):
    factories.make_ai_model()


def errors_of(**values) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        question_from({**GOOD, **values})
    return {error.field: error.code for error in refused.value.errors}


def sentence(field: str, **values) -> str:
    with pytest.raises(InvalidInput) as refused:
        question_from({**GOOD, **values})
    return next(error.detail for error in refused.value.errors if error.field == field)


def test_what_is_absent_has_its_default():
    question = question_from(GOOD)
    workload, preferences = question.workload, question.preferences
    assert (workload.precision_bits, workload.context, workload.requests, workload.reserve_bytes) == (16, 4096, 1, 0)
    assert (preferences.term_days, preferences.lots, preferences.tier, preferences.countries) == (7, 1, "any", ())
    assert preferences.budget_usd is None
    assert preferences.max_hourly_usd is None


def test_the_default_context_is_never_above_the_models_maximum():
    factories.make_ai_model("small", max_context=2048)
    assert question_from({"task": "run", "model": "small"}).workload.context == 2048
    assert errors_of(model="small", context="4096") == {"context": "max_value"}


@pytest.mark.parametrize("field", ["context", "requests", "lots", "precision_bits", "term_days"])
@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_what_is_no_whole_number_is_refused(field, text):
    assert errors_of(**{field: text}) == {field: "invalid"}


@pytest.mark.parametrize("field", ["budget_usd", "max_hourly_usd", "reserve_gib"])
@pytest.mark.parametrize("text", NOT_AMOUNTS)
def test_what_is_no_amount_is_refused(field, text):
    assert errors_of(**{field: text})[field] == "invalid"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"context": ""}, "required"),
        ({"context": "0"}, "min_value"),
        ({"context": "-5"}, "min_value"),
        ({"context": "131073"}, "max_value"),
        ({"context": HUGE}, "max_value"),
        ({"context": "9" * 6000}, "max_value"),
        ({"context": 10**5000}, "max_value"),
        ({"context": -(10**5000)}, "min_value"),
        ({"context": True}, "invalid"),
        ({"context": 7.5}, "invalid"),
        ({"context": float("nan")}, "invalid"),
        ({"context": {"a": 1}}, "invalid"),
        ({"context": None}, "required"),
        ({"context": ["1", "2"]}, "repeated"),
        ({"requests": "0"}, "min_value"),
        ({"requests": "100001"}, "max_value"),
        ({"requests": HUGE}, "max_value"),
        ({"requests": ""}, "required"),
        ({"lots": ""}, "required"),
        ({"lots": "0"}, "min_value"),
        ({"lots": "-1"}, "min_value"),
        ({"lots": str(MAX_LOTS + 1)}, "max_value"),
        ({"lots": HUGE}, "max_value"),
        ({"precision_bits": "5"}, "invalid_choice"),
        ({"precision_bits": "-16"}, "invalid_choice"),
        ({"precision_bits": HUGE}, "invalid_choice"),
        ({"precision_bits": ""}, "required"),
        ({"term_days": "14"}, "invalid_choice"),
        ({"term_days": "-7"}, "invalid_choice"),
        ({"term_days": ""}, "required"),
        ({"tier": ""}, "required"),
        ({"tier": "Secure"}, "invalid_choice"),
        ({"tier": "gold"}, "invalid_choice"),
        ({"tier": "\x00"}, "invalid_choice"),
        ({"budget_usd": "0"}, "min_value"),
        ({"budget_usd": "-1"}, "min_value"),
        ({"budget_usd": HUGE}, "max_value"),
        ({"budget_usd": "1.001"}, "max_decimal_places"),
        ({"budget_usd": True}, "invalid"),
        ({"max_hourly_usd": "0.00001"}, "max_decimal_places"),
        ({"max_hourly_usd": "0.00"}, "min_value"),
        ({"max_hourly_usd": HUGE}, "max_value"),
        ({"countries": ["ZZ"]}, "invalid_choice"),
        ({"countries": ["EU,US"]}, "invalid_choice"),
        ({"countries": ["\x00"]}, "invalid_choice"),
        ({"countries": ["\ud800"]}, "invalid_choice"),
        ({"countries": [7]}, "invalid_choice"),
        ({"countries": [["EU"]]}, "invalid"),
        ({"countries": "EU"}, "invalid"),
        ({"countries": {"EU": 1}}, "invalid"),
        ({"model": ""}, "required"),
        ({"model": "llama-9"}, "unknown_model"),
        ({"model": "\x00"}, "unknown_model"),
        ({"model": "x" * 10_000}, "unknown_model"),
        ({"model": ["a"] * 2}, "repeated"),
        ({"task": ""}, "required"),
        ({"task": "train"}, "invalid_choice"),
        ({"reserve_gib": "-1", "reserve_reason": "x"}, "min_value"),
        ({"reserve_gib": HUGE, "reserve_reason": "x"}, "max_value"),
        ({"reserve_gib": "1.005", "reserve_reason": "x"}, "max_decimal_places"),
    ],
)
def test_a_bad_value_gets_its_code_at_its_field(values, code):
    assert errors_of(**values)[next(iter(values))] == code


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"context": "131073"}, "Context must be 131,072 or less (published maximum of Llama 3.1 8B)."),
        ({"context": "0"}, "Context must be 1 or more."),
        ({"lots": "1001"}, "Lots must be 1,000 or less."),
        ({"term_days": "14"}, "Term must be 3, 7 or 30 days."),
        ({"model": "llama-3.1-8"}, "“llama-3.1-8” is not a model of the catalog. Did you mean llama-3.1-8b?"),
        ({"countries": ["UK"]}, "“UK” is not a country code: write GB."),
        ({"countries": ["Germany"]}, "“Germany” is not a country code: write DE."),
    ],
)
def test_the_sentence_names_the_limit_and_the_fix(values, words):
    assert sentence(next(iter(values)), **values) == words


def test_a_model_that_cannot_be_sized_is_refused_with_the_missing_figure():
    factories.make_ai_model("secretive", name="Secretive 7B", cache_groups=[])
    assert errors_of(model="secretive") == {"model": "not_sizable"}
    assert sentence("model", model="secretive") == "Secretive 7B cannot be sized: its cache layout is not published."


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("58.80", "58.80"),
        ("58,80", "58.80"),
        ("58,8", "58.80"),
        ("300", "300.00"),
        (" 300 ", "300.00"),
        ("0,01", "0.01"),
        ("300.1000", "300.10"),
        (300, "300.00"),
        (300.5, "300.50"),
        (Decimal("1.20"), "1.20"),
    ],
)
def test_a_comma_may_stand_for_the_point_and_never_for_thousands(text, amount):
    assert str(question_from({**GOOD, "budget_usd": text}).preferences.budget_usd) == amount


@pytest.mark.parametrize("field", ["budget_usd", "max_hourly_usd"])
def test_an_amount_that_reads_in_two_ways_is_asked_back(field):
    assert "5880 or 5.88." in sentence(field, **{field: "5,880"})


def test_money_left_empty_is_no_limit():
    preferences = question_from({**GOOD, "budget_usd": "", "max_hourly_usd": None}).preferences
    assert (preferences.budget_usd, preferences.max_hourly_usd) == (None, None)


def test_a_reserve_and_its_reason_go_together():
    assert errors_of(reserve_gib="2") == {"reserve_reason": "required"}
    assert errors_of(reserve_reason="drivers") == {"reserve_gib": "required"}
    assert errors_of(reserve_gib="2", reserve_reason="a\nb") == {"reserve_reason": "invalid"}
    assert errors_of(reserve_gib="2", reserve_reason="\ud800") == {"reserve_reason": "invalid"}
    assert errors_of(reserve_gib="2", reserve_reason="x" * 201) == {"reserve_reason": "max_length"}
    workload = question_from({**GOOD, "reserve_gib": "1.5", "reserve_reason": "drivers"}).workload
    assert (workload.reserve_bytes, workload.reserve_reason) == (1_610_612_736, "drivers")


def test_countries_are_kept_once_with_eu_first():
    given_twice = QueryDict("task=run&model=llama-3.1-8b&countries=US&countries=EU&countries=us")
    assert question_from(given_twice).preferences.countries == ("EU", "US")


def test_a_value_given_twice_in_an_address_is_refused():
    with pytest.raises(InvalidInput) as refused:
        question_from(QueryDict("task=run&model=llama-3.1-8b&context=1&context=2"))
    assert [(error.field, error.code) for error in refused.value.errors] == [("context", "repeated")]


def test_an_unknown_name_is_refused_with_the_nearest_known_one():
    assert errors_of(contxt="1") == {"contxt": "unknown_field"}
    assert sentence("contxt", contxt="1") == "“contxt” is not known. Did you mean context?"
    assert errors_of(**{"\ud800\x00": "1"})


def test_every_problem_is_named_at_once():
    assert set(errors_of(model="", context="x", lots="0", zzz="1")) == {"model", "context", "lots", "zzz"}


def test_the_api_names_the_object_and_refuses_names_of_the_other_one():
    with pytest.raises(InvalidInput) as refused:
        nested_question_from({**GOOD, "context": 10**6, "lots": 1}, {"term_days": 8, "countries": [["x"]]})
    assert [(error.field, error.code) for error in refused.value.errors] == [
        ("workload.lots", "unknown_field"),
        ("workload.context", "max_value"),
        ("preferences.term_days", "invalid_choice"),
        ("preferences.countries", "invalid"),
    ]
    with pytest.raises(InvalidInput):
        workload_from({"task": ["fine_tune"], "model": {"a": 1}})


amounts = st.decimals("0.01", "99999", places=2)
places = st.sampled_from(["EU", *sorted(countries.names())])
questions = st.fixed_dictionaries(
    {"task": st.just("run"), "model": st.just("llama-3.1-8b")},
    optional={
        "precision_bits": st.sampled_from([16, 8, 4]),
        "context": st.integers(1, 131_072),
        "requests": st.integers(1, 100_000),
        "term_days": st.sampled_from([3, 7, 30]),
        "lots": st.integers(1, 1000),
        "tier": st.sampled_from(["any", "secure", "community"]),
        "countries": st.lists(places, max_size=5),
        "budget_usd": amounts,
        "max_hourly_usd": st.decimals("0.0001", "99", places=4),
    },
)
reserves = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {
            "reserve_gib": amounts,
            "reserve_reason": st.text(min_size=1, max_size=50).filter(is_plain_line),
        }
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions, reserves)
def test_a_permalink_reads_back_as_the_same_question(values, reserve):
    question = question_from({**values, **reserve})
    query = canonical_query(question)
    assert question_from(QueryDict(query)) == question
    assert canonical_query(question_from(QueryDict(query))) == query


def test_the_permalink_has_the_canonical_order_with_defaults():
    question = question_from({**GOOD, "countries": ["US", "EU"], "max_hourly_usd": "0.7", "budget_usd": "300"})
    assert canonical_query(question) == (
        "task=run&model=llama-3.1-8b&precision_bits=16&context=4096&requests=1&term_days=7&lots=1&tier=any"
        "&countries=EU&countries=US&max_hourly_usd=0.70&budget_usd=300.00"
    )


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("1,000", "can be read in two ways: write 1000 or 1."),
        ("1,500", "can be read in two ways: write 1500 or 1.5."),
        ("12,340", "can be read in two ways: write 12340 or 12.34."),
        ("1,234", "can be read in two ways: write 1234, without the comma."),
    ],
)
def test_a_comma_is_explained_by_readings_that_the_field_takes_as_that_amount(written, fix):
    field = PreferencesForm.base_fields["budget_usd"]
    with pytest.raises(ValidationError) as refused:
        field.clean(written)
    assert refused.value.messages[0] == f"Budget “{written}” {fix}"
    for reading in fix.rstrip(".").partition("write ")[2].partition(",")[0].split(" or "):
        assert field.clean(reading) in {Decimal(written.replace(",", "")), Decimal(written.replace(",", "."))}


@pytest.mark.parametrize("values", [[""], ["DE", ""], [" "]])
def test_an_empty_country_is_refused_and_never_means_anywhere(values):
    with pytest.raises(ValidationError, match="empty value"):
        PreferencesForm.base_fields["countries"].clean(values)
    assert PreferencesForm.base_fields["countries"].clean([]) == ()
