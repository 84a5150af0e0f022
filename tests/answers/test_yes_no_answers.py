"""Yes or no: what both sets of rules read."""

from __future__ import annotations

from tables import cases

from testbed.answers.scorings import SCORINGS

LONG = "The man sits on a bench. " * 40
CASES = [
    # the answer, what `default` reads, what `vlmevalkit` reads
    ("Yes", "Yes", "Yes"),
    ("no.", "No", "No"),
    ("No, there is not", "No", "No"),
    ("There is no dog in it", "No", "No"),
    ("Yes, there is no dog", "Yes", None),
    ("No, yes and no are words", "No", None),
    ("**Yes**", "Yes", None),
    ("Answer:Yes", "Yes", None),
    ("Answer: No", "No", "No"),
    ('The answer is "no".', "No", "No"),
    ("Yes. No, the answer is no.", "No", None),
    ("True", "Yes", None),
    ("false.", "No", None),
    ("That is true", None, None),
    ("<answer>Yes</answer>", "Yes", "Yes"),
    ('{"answer": "no"}', "No", "No"),
    ('{"answer": true}', "Yes", None),
    ("\\boxed{\\text{Yes}}", "Yes", "Yes"),
    ("<think>No, or is it?</think>Yes", "Yes", None),
    ("<think>Yes, it seems", None, "Yes"),
    ("Ｙｅｓ！", "Yes", None),
    ("是", "Yes", None),
    ("否。", "No", None),
    ("Yes or no", None, None),
    ("Yes/No?\nNo", "No", None),
    ("The man sits. So:\n**No**", "No", None),
    (LONG + "yes.", "Yes", None),
    ("The answer is not yes", None, "Yes"),
    ("Not yes", None, "Yes"),
    ("anything but yes", None, "Yes"),
    ("Yes, but no", None, None),
    ("Yes. Wait, no", "No", None),
    ("No, wait, yes", "Yes", None),
    ("Yes? No.", None, None),
    ("Yes, but that is wrong.", None, "Yes"),
    ("Yes, that is wrong.", "Yes", "Yes"),
    ("Yes, and that is wrong.", "Yes", "Yes"),
    ("No, it is not.", "No", "No"),
    ("No... yes", None, None),
    ("Yes... actually no, that is a wolf.", "No", None),
    ("No. Sorry, yes, there is one.", "Yes", None),
    ("Yes. Actually, there are two.", "Yes", "Yes"),
    ("Yes! Actually no dog is there.", None, None),
    ("At first I thought yes, but no.", None, None),
    ("Yes\n\nNo", None, None),
    ("Yes? Yes.", "Yes", "Yes"),
    ("True or false", None, None),
    ("yesterday", None, None),
    ("I know", None, None),
    ("It is not", None, None),
    ("Unsure", None, None),
    ("", None, None),
    ("Failed to obtain answer via API.", None, None),
]


@cases(("text", "default", "published"), CASES)
def test_what_is_read(text, default, published):
    read = SCORINGS["yes_no"]
    found = [read({"answer": "Yes"}, text, rules).extracted for rules in ("default", "vlmevalkit")]
    assert found == [default, published]


def test_the_score():
    read = SCORINGS["yes_no"]
    assert [read({"answer": right}, "No", "vlmevalkit").score for right in ("Yes", "No", "no")] == [0, 1, 0]
    assert [read({"answer": right}, "No", "default").score for right in ("Yes", "No", "no")] == [0, 1, 1]
    assert read({"answer": "No"}, "Perhaps", "default").score == 0
