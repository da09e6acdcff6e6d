"""Secrets in text, masked line by line: by shape, in URLs, behind names, and where a command takes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from trainmark.base.secret_patterns import (
    PRIVATE_KEY,
    SHAPES,
    Likelihood,
    is_plain,
    likelihood_of,
    looks_random,
)

HIDDEN = "*****"
MOST_WORDS = 30  # of a command
LONGEST_GUESS = 100  # letters behind a name that leaves it to the value; more than a key has
MOST_LINES = 200  # of one value; more than a key has

URL_PASSWORD = re.compile(r"(?<=://)([^\s/?#:@\"']*):([^\s/?#]+)@")
# With a slash in it: no port, unless no user stands before. Bounded, or many `://` would take their square.
URL_SLASHED = re.compile(
    r"(?<=://)([^\s/?#:@\"']{0,99}):((?:(?<=/:)|(?!\d*/))[^\s\"'<>@]{1,200})@(?=[\w\[*])"
)
URL_USER = re.compile(r"(?<=://)([^\s/?#:@\"'*]+)(?=@[\w.\[-])")

# What may stand around a sign: blanks, and the codes by which a terminal colours.
GAP = r"(?:[ \t]|\x1b\[[0-9;]*[A-Za-z]|\\(?:x1b|033|u001b|e)\[[0-9;]*m){0,40}"
# Between two words of a command: blanks, the comma of a list, or what `masked_words` puts there.
NEXT = r"(?:[ \t\0]+|\\?[\"'][ \t]*,[ \t]*(?=\\?[\"']))"
ARGUMENT = NEXT + r"\\?[\"']?"
SIGN = re.compile(
    r"(?:(?<![\w.-])|(?<=[\[;]\dm)|(?<=[\[;]\d\dm)|(?<=\\[nrt]))"
    r"(?P<name>(?:api|access|secret|private)[ ]key|-{0,2}[A-Za-z_][\w.-]*)"
    rf"(?:[\"'`\])]|\\+[\"']){{0,9}}{GAP}(?::=|=>|==?|->|[:：＝](?!:)|%3[ad]|(?<=[\w\"'])>)(?P<gap>{GAP})",
    re.IGNORECASE,
)
# Names without a sign: options, pairs in brackets, `aws configure set NAME VALUE`, and what a .netrc has.
WITHOUT_SIGN = (
    re.compile(rf"(?<![\w-])(?P<name>--?[A-Za-z_][\w.-]+)(?P<gap>{NEXT})(?=[^\s\0-])"),
    re.compile(r"(?<=[(\[{])\\?[\"'](?P<name>[A-Za-z_][\w.-]*)\\?[\"'](?P<gap>[ \t]*,[ \t]*)(?=\\?[\"'])"),
    re.compile(rf"\b(?:setenv|set|secret){ARGUMENT}(?P<name>[A-Za-z_][\w.-]*)(?P<gap>{NEXT})(?=[^\s\0=:])"),
    re.compile(r"(?:^[ \t#]*|\blogin[ \t]+\S{1,99}[ \t]+)(?P<name>password)(?P<gap>[ \t]+)(?=\S+[ \t]*$)"),
)
# `name: DB_PASSWORD`, and the `value: …` behind or below it.
NAME_OF = re.compile(
    r"\b(?:name|key|variable)\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?([A-Za-z_][\w.-]*)", re.IGNORECASE
)
VALUE_OF = re.compile(r"\bvalue\\?[\"']?[ \t]*[:=](?P<gap>[ \t]*)(?=\S)", re.IGNORECASE)

QUOTE = re.compile(r"(?:[A-Za-z_][\w.]{0,40}\(|[bruf@$]{1,2})?(\\*(?:\"{3}|'{3}|[\"'`]))", re.IGNORECASE)
# One word of a value: what closes something ends it only where nothing of the word can follow.
WORD = re.compile(
    r"(?:[^\s\0,;&<>)\]}\"'`\\]|\\(?![\"']|\s*$)|>(?=\S)|,(?!\s|$|\\?[\"'`]|[\w.-]{1,60} ?[=:])"
    r"|[)\]}\"'`](?![\s,;:.)\]}\"'`<&\0\\]|$))+"
)
MORE_WORDS = re.compile(r"[ \t]+(?!-|[|#>\\]|&&|[\w.-]{1,60}[\"']? ?[=:])")
SCHEME = re.compile(r"(?:Bearer|Basic|Digest|Negotiate|Token|ApiKey)[ \t]+(?=\S)", re.IGNORECASE)
HEADER = re.compile(r"(?:authorization|cookies?)$", re.IGNORECASE)
# What may stand before a name that has its line to itself.
START = re.compile(r"[\s#>*|-]*(?:export |set |ENV )?[\"'`]?(?:\x1b\[[0-9;]*m)*")
OPENED = re.compile(r"[ \t]*(?:[|>][+-]?\d?|[\[({]|\\)?[ \t]*(?:#.*)?\r?$")
OPEN_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z_][\w.-]+)(?:[ \t]+\\|\\?[\"'][ \t]*,)[ \t]*\r?$")
DEPTH = re.compile(r"[ \t#>|]*")  # a comment has depths as well
ITEM = re.compile(r"[ \t#>|]*(?:-[ \t]+)*(?:[\"']?[\w.-]+[\"']?[ \t]*[:=][ \t]+)?")
JOINED = re.compile(r"[\"'](?![\s,;:.)\]}<&\0\\]|$)")
CLOSING = {"[": "]", "(": ")", "{": "}"}

# Programs that take a secret without its name: words of the line, the option, and how it stands there.
LOGINS = ("wandb", "comet", "hf", "huggingface-cli", "neptune", "clearml", "swanlab", "modal", "fly")
FORMS = {
    "next": rf"(?<![\w-])(?:{{}})(?:{ARGUMENT}|=|)([^\s\0\"'-][^\s\0\"']*)",
    "attached": r"(?<![\w-])(?:{})([^\s\0\"']+)",
    "user": rf"(?<![\w-])(?:{{}})(?:{ARGUMENT}|=|)[^\s\0\"':%,]*[:%,]([^\s\0\"']+)",
    "login": rf"\b(?:{{}})[\w-]*(?:{ARGUMENT}auth)?{ARGUMENT}login{ARGUMENT}([^\s\0\"'`-][^\s\0\"'`]*)",
}
# A line of a list that a program printed with a word a line.
LISTED = re.compile(r"([ \t#]*\[?[\"'])([^\"']*)([\"'],?[ \t]*\]?\r?)")
COMMANDS = tuple(
    (words.split(), form, re.compile(FORMS[form].format(option)))
    for words, option, form in (
        ("curl", "-u|--user|-U|--proxy-user", "user"),
        ("http", "-a|--auth", "user"),
        ("lftp", "-u|--user", "user"),
        ("smbclient", "-U|--user", "user"),
        ("mysql", "-p", "attached"),
        ("mariadb", "-p", "attached"),
        ("sshpass", "-p", "next"),
        ("redis-cli", "-a|--pass", "next"),
        ("mongo", "-p", "next"),
        ("ldap", "-w", "next"),
        ("docker login", "-p", "next"),
        ("podman login", "-p", "next"),
        ("helm login", "-p", "next"),
        ("az login", "-p", "next"),
        ("zip", "-P", "next"),
        ("7z", "-p", "attached"),
        ("openssl", "pass:", "next"),
        ("ssh-keygen", "-N", "next"),
        ("aws configure", "aws_\\w+", "next"),
        *((f"{program} login", program, "login") for program in LOGINS),
    )
)
SAME_DIGITS = str.maketrans("123456789", "0" * 9)
# In lower case: a line without any of these has no name that says of a secret.
HINTS = (
    "key", "secret", "token", "pass", "pwd", "pw", "cred", "auth", "bearer", "cookie", "pat", "dsn",
    "webhook",
    "connection", "uri", "url", "sig", "session", "sid", "jwt",
)  # fmt: skip


def mask_text(text: str) -> tuple[str, dict[int, Likelihood]]:
    """Return the text, of as many lines, with its secrets masked, and how sure that was by line."""
    masked = _Lines(text)
    masked.by_shape()
    masked.by_command()
    masked.by_name()
    return "\n".join(masked.lines), masked.found


def masked_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command, with those masked that the words before them tell."""
    joined = mask_text("\0".join(words))[0].split("\0")
    return joined if len(joined) == len(words) else list(words)


class _Lines:
    """The lines of a text, which are masked in place."""

    def __init__(self, text: str) -> None:
        self.found: dict[int, Likelihood] = {}
        if "PRIVATE KEY" in text:
            text = PRIVATE_KEY.sub(self._hide_key, text)
        self.lines = text.split("\n")
        self._text = text
        self._lowered = text.lower()
        self._lowered_lines = self._lowered.split("\n")

    def by_shape(self) -> None:
        for shape in SHAPES:
            for number in self._holding(shape.hints, self._text, self.lines):
                self._put(number, shape.pattern.sub(HIDDEN, self.lines[number]), Likelihood.SURE)
        for number in self._holding(("://",), self._text, self.lines):
            if "@" in (line := self.lines[number]):
                line = URL_PASSWORD.sub(rf"\1:{HIDDEN}@", line)
                line = URL_SLASHED.sub(rf"\1:{HIDDEN}@", line)
                self._put(number, URL_USER.sub(_hide_user, line), Likelihood.SURE)

    def by_command(self) -> None:
        for words, form, pattern in COMMANDS:
            for number in self._holding(words[:1], self._lowered, self._lowered_lines):
                listed = self._listed(number)
                line = "\0".join(part[2] for part in listed) or self.lines[number]
                if not all(word in line.lower() for word in words):
                    continue
                line = pattern.sub(_hide_argument if form != "login" else _hide_key_of_login, line)
                if not listed:
                    self._put(number, line, Likelihood.SURE)
                for below, (part, word) in enumerate(
                    zip(listed, line.split("\0"), strict=False), start=number
                ):
                    self._put(below, part[1] + word + part[3], Likelihood.SURE)

    def _listed(self, number: int) -> list[re.Match[str]]:
        """The words of a list that begins here, if it has a line for each."""
        lines = map(LISTED.fullmatch, self.lines[number : number + MOST_WORDS])
        words = [match for match in takewhile(bool, lines) if match]
        return words if len(words) > 1 else []

    def by_name(self) -> None:
        """Where nothing is masked, lines that differ in digits alone are looked at once: logs have many."""
        kinds = self._text.translate(SAME_DIGITS).split("\n")
        told = {kind for kind in set(kinds) if any(map(kind.lower().__contains__, HINTS))}
        for number, kind in enumerate(kinds) if told else ():
            if kind in told and not self._by_name_in(number) and "\\" not in kind:
                told.remove(kind)

    def _by_name_in(self, number: int) -> bool:
        """Whether a line like this one, with other digits, has to be looked at as well."""
        seen = self._signs(number, SIGN)
        for pattern in WITHOUT_SIGN:
            seen |= self._signs(number, pattern)
        seen |= self._pair(number)
        if (option := OPEN_OPTION.search(self.lines[number])) and likelihood_of(option[1]) is Likelihood.SURE:
            self._below(number, option[1], Likelihood.SURE, everywhere=True)
            return True
        return seen

    def _holding(self, hints: Iterable[str], text: str, lines: Sequence[str]) -> Iterator[int]:
        for hint in hints:
            if hint in text:
                yield from [number for number, line in enumerate(lines) if hint in line]

    def _put(self, number: int, line: str, doubt: Likelihood) -> None:
        if line != self.lines[number]:
            self.lines[number] = line
            self.found[number] = max(doubt, self.found.get(number, doubt))

    def _hide_key(self, key: re.Match[str]) -> str:
        """A key has many lines: their number stays."""
        first, more = key.string.count("\n", 0, key.start()), key.group().count("\n")
        self.found |= dict.fromkeys(range(first, first + more + 1), Likelihood.SURE)
        return HIDDEN + "\n" * more

    def _signs(self, number: int, pattern: re.Pattern[str]) -> bool:
        line, place, seen = self.lines[number], 0, False
        kept: list[str] = []
        done = 0
        while match := pattern.search(line, place):
            place = match.end()
            if not (doubt := likelihood_of(match["name"])):
                continue
            if OPENED.match(line, place):
                self._below(number, match["name"], doubt, everywhere=line.rstrip().endswith("\\"))
                seen = True
                break
            near = line if doubt > Likelihood.GUESSED else line[: place + LONGEST_GUESS]
            start, stop = _value(near, match, pattern is SIGN)
            if _counts(match["name"], line[start:stop], doubt):
                start, stop = _value(line, match, pattern is SIGN)
                kept += line[done:start], HIDDEN
                place = done = stop
                self.found[number] = max(_at_least_possible(doubt), self.found.get(number, Likelihood.NONE))
        self.lines[number] = "".join((*kept, line[done:]))
        return seen or bool(kept)

    def _below(self, number: int, name: str, doubt: Likelihood, *, everywhere: bool) -> None:
        """Mask the lines of a value below its name: those that are deeper, or the next of a command."""
        depth = _depth(self.lines[number])
        for below in range(number + 1, min(number + 1 + (1 if everywhere else MOST_LINES), len(self.lines))):
            line = self.lines[below]
            deeper, listed = _depth(line) > depth, _depth(line) == depth and line[depth : depth + 2] == "- "
            if not (everywhere or deeper or listed or not line.strip()):
                return
            start = ITEM.match(line).end()  # type: ignore[union-attr]
            quoted = QUOTE.match(line, start)
            start, stop = _quoted(line, quoted) if quoted else (start, len(line.rstrip(" \t\r,\\")))
            if line[start:stop].strip("()[]{} \t,") and _counts(name, line[start:stop], doubt):
                self._put(below, line[:start] + HIDDEN + line[max(start, stop) :], _at_least_possible(doubt))

    def _pair(self, number: int) -> bool:
        seen = False
        for named in islice(NAME_OF.finditer(self.lines[number]), MOST_WORDS):
            if likelihood_of(named[1]) < Likelihood.POSSIBLE:
                continue
            seen = True
            for below in range(number, min(number + 3, len(self.lines))):
                line = self.lines[below]
                if match := VALUE_OF.search(line, named.end() if below == number else 0):
                    start, stop = _value(line, match, below != number)
                    if _counts(named[1], line[start:stop], Likelihood.SURE):
                        self._put(below, line[:start] + HIDDEN + line[stop:], Likelihood.SURE)
                    break
        return seen


def _hide_argument(match: re.Match[str]) -> str:
    before, after = match.start(1) - match.start(), match.end(1) - match.start()
    return match[0][:before] + HIDDEN + match[0][after:]


def _hide_key_of_login(match: re.Match[str]) -> str:
    return _hide_argument(match) if looks_random(match[1]) else match[0]


def _at_least_possible(doubt: Likelihood) -> Likelihood:
    """What is masked by a name that leaves doubt is a possible secret."""
    return max(Likelihood.POSSIBLE, doubt)


def _hide_user(match: re.Match[str]) -> str:
    """`https://TOKEN@host`; `git@host` and names stay."""
    return HIDDEN if looks_random(match[1]) else match[0]


def _counts(name: str, value: str, doubt: Likelihood) -> bool:
    """Whether this value of that name is to be masked."""
    if is_plain(name, value.strip("\"'`[](){},; \t\r\\")):
        return False
    words = re.split(r"[\s\"',;\[\](){}]+", value[:2000])
    return doubt is not Likelihood.GUESSED or any(map(looks_random, words))


def _value(line: str, match: re.Match[str], has_sign: bool) -> tuple[int, int]:
    """Where the value behind a name begins and ends."""
    name, place = match.groupdict().get("name", "value"), match.end()
    if line.startswith(HIDDEN, place) and not HEADER.search(name):
        return place, place + len(HIDDEN)
    if quoted := QUOTE.match(line, place):
        return _quoted(line, quoted)
    if closing := CLOSING.get(line[place]):
        end = line.find(closing, place)
        return place + 1, len(line) if end < 0 else end
    alone = has_sign and START.fullmatch(line[:500], 0, min(match.start(), 500)) is not None
    if HEADER.search(name):
        scheme = SCHEME.match(line, place)
        return (scheme.end() if scheme else place), _end_of_quote(line, match.start(), place)
    stop = place
    spaced = match["gap"] or ":" in line[match.end("name") : place] or (alone and not name.isupper())
    while word := WORD.match(line, stop):
        stop = word.end()
        if not (has_sign and spaced) or not (more := MORE_WORDS.match(line, stop)):
            break
        stop = more.end()
    if (
        alone
        and spaced
        and line[stop : stop + 1] in {",", ";", ")", "]", "}"}
        and not re.search(r"[\w.-]\"? ?[=:]", line[stop : stop + 500])
    ):
        stop = len(line.rstrip("\r,"))
    return place, len(line[:stop].rstrip())


def _quoted(line: str, quote: re.Match[str]) -> tuple[int, int]:
    """From a quote to what closes it, else to the line's end, with what a shell joins to it: `'a'"b"`."""
    start, end = quote.start(), _closed(line, quote.end(), quote[1])
    while end < len(line):
        if (joined := JOINED.match(line, end)) is not None:
            end = _closed(line, joined.end(), joined[0])
        elif (word := WORD.match(line, end)) is not None:
            end = word.end()
        else:
            break
    return start, end


def _closed(line: str, place: int, sign: str) -> int:
    """Behind the quote that closes; one behind an odd number of backslashes does not."""
    end = line.find(sign, place)
    while end >= 0:
        first = end
        while first > place and line[first - 1] == "\\":
            first -= 1
        if (end - first) % 2 == 0:
            return end + len(sign)
        end = line.find(sign, end + 1)
    return len(line)


def _end_of_quote(line: str, start: int, place: int) -> int:
    """Where the quote ends in which a header stands, else the line."""
    before = line[max(0, start - 1000) : start]
    for sign in "\"'":
        if before.count(sign) % 2 and (end := line.find(sign, place)) >= 0:
            return end
    return len(line.rstrip())


def _depth(line: str) -> int:
    return DEPTH.match(line).end()  # type: ignore[union-attr]
