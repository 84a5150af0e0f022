"""What is hidden of URLs that are printed, logged or stored for others."""

from __future__ import annotations

from tables import cases

from testbed.errors import DataError, StoreError
from testbed.redaction import redacted, redacted_values, redacted_word

SECRET = "s3cret"

HIDDEN = [
    f"postgresql://me:{SECRET}@db.lab/testbed",
    f"postgresql+psycopg://me:{SECRET}@db.lab/testbed",
    f"postgresql://db.lab/testbed?password={SECRET}",
    f"postgresql://db.lab/testbed?sslmode=require&sslpassword={SECRET}",
    f"postgresql://db.lab/testbed?passwrd={SECRET}&host=/tmp",
    f"postgres://me:{SECRET}/with@slash@db.lab/testbed",
    f"s3://AKIAKEY:{SECRET}@bucket/outputs",
    f"s3://bucket/outputs?secret={SECRET}",
    f"sftp://me:{SECRET}@host:22/outputs",
    f"https://{SECRET}@host/file",
    f"https://me:{SECRET}@host/file",
    f"https://host/file?X-Amz-Signature={SECRET}&X-Amz-Credential={SECRET}",
    f"https://host/file?{SECRET}",
    f"az://container/x?sv=2020&sig={SECRET}",
    f"HTTPS://host/file?Token={SECRET}",
    f"simplecache::s3://key:{SECRET}@bucket/x",
    f"postgresql//me:{SECRET}@db.lab/testbed",
    f"postgresql:/me:{SECRET}@db.lab/testbed",
    f"postgresql:me:{SECRET}@db.lab/testbed",
    f"postgresql/me:{SECRET}@db.lab/testbed",
    f"//me:{SECRET}@db.lab/testbed",
    f"https:me:{SECRET}@host/file",
    f"s3//key:{SECRET}@bucket/outputs",
    f"me:{SECRET}@db.lab:5432/testbed",
    f"me:{SECRET}@localhost:5432",
    f"me:{SECRET}@db.lab.org/testbed",
    f"base_url=http://me:{SECRET}@host/v1",
    f"api:gpt-x,base_url=http://me:{SECRET}@host",
    f"api:gpt-x@https//me:{SECRET}@host/v1",
]


@cases("url", HIDDEN)
@cases("around", ["{}", "'{}'", "the file {} is missing; try again", "({})", "a://b {}\n{}", '"{}",'])
def test_no_secret_of_a_url_is_shown(url: str, around: str) -> None:
    text = around.replace("{}", url)
    assert SECRET not in redacted(text)
    assert SECRET not in redacted_word(text)
    assert SECRET not in str(DataError(text))
    assert redacted(redacted(text)) == redacted(text)


@cases(
    "text",
    [
        "postgresql://me@db.lab:5432/testbed?host=/var/run&sslmode=require",
        "sqlite:////home/me/what?.db",
        "file:///mnt/lab/a:b@c?d=e",
        "s3://bucket/outputs",
        "sftp://me@host/outputs",
        "http://127.0.0.1:8765/",
        "see https://docs.aws.amazon.com/a/b.html.",
        "is it at https://host/x? Yes: a@b, c=d",
        "a@b:c ?password=x",  # no URL
        "api:gpt-4o@https://host/v1",
        "api:llama@http://127.0.0.1:8000/v1",
        "ensemble:a+b@imagenet-c.brightness.1",
        "the model soup:net@wds/cifar10 at 12:30",
        "/mnt/lab/a:b@c/x",
        "me@host:5432",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_the_rest_of_a_url_stays() -> None:
    assert redacted("(s3://key:a/b@bucket/x?y=1&z)") == "(s3://key:***@bucket/x?y=***&***)"
    assert redacted_word("--db-url=postgresql://me:a b@h/d") == "--db-url=postgresql://me:***@h/d"


def test_values_are_redacted_wherever_they_are() -> None:
    given = {"a": [f"s3://k:{SECRET}@b", 1, None], "b": {"c": f'x://h?q={SECRET}"'}}
    assert SECRET not in repr(redacted_values(given))
    assert redacted_values(given)["a"][1:] == [1, None]


def test_errors_with_other_arguments_are_as_they_were() -> None:
    assert StoreError("plain", 3).args == ("plain", 3)
