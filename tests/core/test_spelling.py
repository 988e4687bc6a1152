"""Names close to one that is not there."""

from hypothesis import given
from hypothesis import strategies as st

from twofold.core.spelling import MAX_COMPARED_NAMES, close_names, did_you_mean

words = st.text("abcdefgh", min_size=1, max_size=8)


@given(words, st.lists(words, max_size=20), st.integers(1, 4))
def test_answers_are_known_names_and_few(wanted, known, count):
    near = close_names(wanted, known, count)
    assert set(near) <= set(known) and len(near) <= count and len(near) == len(set(near))


@given(words, st.lists(words, max_size=20))
def test_a_name_that_is_there_in_other_case_comes_first(wanted, known):
    assert close_names(wanted.upper(), [*known, wanted])[0] == wanted


def test_nothing_near_is_said_otherwise():
    assert close_names("qqq", ["abc"]) == [] and did_you_mean("qqq", ["abc"], "It has abc.") == "It has abc."


def test_of_very_many_names_the_first_are_looked_at():
    names = ["zzzzzz"] * MAX_COMPARED_NAMES + ["wanted"]
    assert close_names("wanted", names) == [] and close_names("wanted", names[1:]) == ["wanted"]
