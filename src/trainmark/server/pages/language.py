"""Choose the language of a page: by the address, else the cookie of an earlier choice, else the browser."""

from __future__ import annotations

from trainmark.report.format.words import LANGUAGES, Lang

PARAMETER = "lang"
COOKIE = "trainmark_lang"
DEFAULT: Lang = "en"


def chosen(value: str | None) -> Lang | None:
    """Return the language of an explicit choice, None where it names none that there is."""
    return next((lang for lang in LANGUAGES if lang == value), None)


def language(parameter: str | None, cookie: str | None, accepted: str) -> Lang:
    return chosen(parameter) or chosen(cookie) or accepted_language(accepted)


def accepted_language(header: str) -> Lang:
    """Return the best of an Accept-Language header (RFC 9110 §12.5.4); English where it asks for neither."""
    best, weight = DEFAULT, 0.0
    for part in header[:1000].split(","):
        tag, _, parameters = part.strip().partition(";")
        lang = chosen(tag.strip().lower().partition("-")[0])
        quality = _quality(parameters)
        if lang and quality > weight:
            best, weight = lang, quality
    return best


def _quality(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return min(1.0, max(0.0, float(value)))
    except ValueError:
        return 0.0
