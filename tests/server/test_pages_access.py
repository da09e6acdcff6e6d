"""Who sees a page: signing in and out, tokens made and revoked, forms of other sites."""

import asyncio
import re

import pages_client
import pytest
from pages_sample import MACHINES, sample_app
from starlette.exceptions import HTTPException
from starlette.requests import Request

from trainmark.server.pages.account import LARGEST_FORM_BYTES, MEDIA_TYPE, form_fields
from trainmark.server.pages.respond import COOKIE, accepted_language, language_of


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return sample_app(tmp_path_factory.mktemp("access"), MACHINES[:1], 3)


@pytest.fixture
def visitor(served):
    return pages_client.Client(served.app)


def signed_in(served, role):
    client = pages_client.Client(served.app)
    answer = client.post("/login", {"token": served.secrets[role], "next": "/cases?q=jax"})
    assert answer.status_code == 303, answer.text
    return client, answer


def csrf_of(client):
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/admin").text)[1]


def test_a_visitor_without_a_token_is_sent_to_the_login_and_back(served, visitor):
    answer = visitor.get("/cases?q=jax")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fcases%3Fq%3Djax")
    client, entered = signed_in(served, "read")
    assert entered.headers["location"] == "/cases?q=jax"
    assert client.get("/cases").status_code == 200


def test_the_session_is_a_cookie_that_no_script_reads(served):
    _, answer = signed_in(served, "read")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


@pytest.mark.parametrize("place", ["//evil.example", "https://evil.example/", "/\\evil.example", "evil"])
def test_after_the_login_nobody_is_sent_to_another_site(served, visitor, place):
    answer = visitor.post("/login", {"token": served.secrets["read"], "next": place})
    assert answer.headers["location"] == "/"


def test_a_wrong_token_is_refused_with_a_sentence(visitor):
    answer = visitor.post("/login", {"token": "tm_wrong", "next": "/"})
    assert answer.status_code == 401
    assert "unknown, revoked or expired" in answer.text


def test_signing_out_ends_the_session(served):
    client, _ = signed_in(served, "admin")
    client.post("/logout", {"csrf": csrf_of(client)})
    assert client.get("/cases").status_code == 303


@pytest.mark.parametrize("role", ["read", "push"])
def test_only_admins_see_the_tokens(served, role):
    client, _ = signed_in(served, role)
    answer = client.get("/admin")
    assert answer.status_code == 403
    assert "may not do that" in answer.text


def test_an_admin_makes_a_token_that_is_shown_once_and_revokes_it(served):
    admin, _ = signed_in(served, "admin")
    fields = {"csrf": csrf_of(admin), "name": "ci-bot", "role": "read", "days": "30"}
    made = admin.post("/admin/tokens", fields).text
    (secret,) = re.findall(r"tm_[\w-]{20,}", made)
    assert secret not in admin.get("/admin").text
    reader = pages_client.Client(served.app, secret)
    assert reader.get("/cases").status_code == 200
    assert admin.post("/admin/tokens/revoke", {"csrf": csrf_of(admin), "name": "ci-bot"}).status_code == 303
    assert reader.get("/cases").status_code == 401


@pytest.mark.parametrize(
    ("change", "headers"),
    [
        ({"csrf": ""}, {}),
        ({"csrf": "0" * 64}, {}),
        ({}, {"origin": "https://evil.example"}),
        ({}, {"sec-fetch-site": "cross-site"}),
    ],
)
def test_a_form_of_another_site_makes_no_token(served, change, headers):
    admin, _ = signed_in(served, "admin")
    fields = {"csrf": csrf_of(admin), "name": "stolen", "role": "admin", "days": "", **change}
    assert admin.post("/admin/tokens", fields, **headers).status_code == 403
    assert "stolen" not in admin.get("/admin").text


def test_a_token_with_a_wrong_name_role_or_life_is_refused(served):
    admin, _ = signed_in(served, "admin")
    good = {"csrf": csrf_of(admin), "name": "fine", "role": "read", "days": "30"}
    for wrong in ({"name": "<script>"}, {"name": "admin-bot"}, {"role": "owner"}, {"days": "-1"}):
        assert admin.post("/admin/tokens", {**good, **wrong}).status_code == 400


def test_a_chosen_language_stays(served):
    client, _ = signed_in(served, "read")
    assert "用例" not in client.get("/cases").text
    assert "用例" in client.get("/cases?lang=zh").text
    assert "用例" in client.get("/runs").text
    assert "用例" not in client.get("/runs?lang=en").text


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("fr,de;q=0.9", "en"),
        ("en;q=0.2, zh;q=0.7", "zh"),
        ("zh;q=bad,en;q=0.1", "en"),
        ("", "en"),
    ],
)
def test_the_browser_asks_for_a_language_by_weight(header, lang):
    assert accepted_language(header) == lang
    headers = [(b"cookie", f"{COOKIE}=zh".encode()), (b"accept-language", header.encode())]
    scope = {"type": "http", "query_string": b"lang=nonsense", "headers": headers}
    assert language_of(Request(scope)) == "zh"


def form_of(chunks, media_type=MEDIA_TYPE, length: int | None = None):
    """Return the fields of a form that comes in chunks, and how many of them were read."""
    read = iter(chunks)

    async def receive():
        chunk = next(read, None)
        return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

    headers = [(b"content-type", media_type.encode())]
    headers += [] if length is None else [(b"content-length", str(length).encode())]
    fields = asyncio.run(form_fields(Request({"type": "http", "headers": headers}, receive)))
    return fields, len(list(read))


def test_a_form_has_its_fields_however_it_comes():
    assert form_of([b"token=a%2Bb&ne", b"xt=%2Fcases&token="])[0] == {"token": "", "next": "/cases"}


@pytest.mark.parametrize(
    ("chunks", "media_type", "length", "status"),
    [
        ([], MEDIA_TYPE, LARGEST_FORM_BYTES + 1, 413),
        ([b"&" * LARGEST_FORM_BYTES, b"&"], MEDIA_TYPE, None, 413),
        ([b"a=1&" * 20], MEDIA_TYPE, None, 400),
        ([b"token=\xff"], MEDIA_TYPE, None, 400),
        ([b"--x"], "multipart/form-data; boundary=x", None, 400),
    ],
)
def test_a_form_that_no_page_of_ours_sends_is_refused(chunks, media_type, length, status):
    with pytest.raises(HTTPException) as refused:
        form_of(chunks, media_type, length)
    assert refused.value.status_code == status


def test_a_form_that_goes_on_for_ever_is_read_no_further_than_its_limit():
    taken = []

    def endless():
        while True:
            taken.append(1024)
            yield b"a" * 1024

    with pytest.raises(HTTPException):
        form_of(endless())
    assert sum(taken) <= LARGEST_FORM_BYTES + 1024
