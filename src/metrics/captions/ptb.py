"""The tokenizer of COCO's caption evaluation: the Penn Treebank's, by regular expressions instead of Java.

pycocoevalcap runs the ``PTBTokenizer`` of Stanford CoreNLP 3.4.1 with ``-preserveLines -lowerCase`` and drops
punctuation. This module gives the same tokens: a scanner takes at each place the longest match among some rules, the
first of them if several are as long; what follows a token may be part of its rule and then counts in the length.

Java reads all captions as one text, so that the beginning of the next caption may decide whether a last letter keeps
its period ("vitamin C."). Here, each caption is read alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

# What COCO's evaluation drops; brackets, which it means to drop too, it misses in lower case: "-lrb-" is a word.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

_QUOTES = {"\u0091": "`", "\u2018": "`", "\u201b": "`", "\u2039": "`"}
_QUOTES |= {"\u0092": "'", "\u2019": "'", "\u203a": "'"}
_QUOTES |= {"\u0093": "``", "\u201c": "``", "\u00ab": "``", "\u0094": "''", "\u201d": "''", "\u00bb": "''"}
_CURRENCIES = {"\u00a2": "cents", "\u00a3": "#", "\u0080": "$", "\u00a4": "$", "\u20a0": "$", "\u20ac": "$"}
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "{": "-LCB-", "}": "-RCB-", "[": "-LSB-", "]": "-RSB-"}

# Parts of rules. Words in rules match in any case, classes such as [A] only as they are written.
_SPACE = r"[ \t\n\u00A0\u2000-\u200A\u3000]"
_PLAIN = (  # Python counts fractions and superscripts among word characters; Java's scanner sees 16 bits
    r"(?:(?![\u00B2\u00B3\u00B9\u00BC-\u00BE\u09F4-\u09F9\u2070\u2074-\u2079\u2080-\u2089\u2150-\u2188\u2460-\u249B"
    r"\u24EA-\u24FF\u2776-\u2793\u3007\u3021-\u3029\u3038-\u303A\U00010000-\U0010FFFF])[^\W\d_])"
)
_LETTER = (
    rf"(?:{_PLAIN}"
    r"|&[aeiouAEIOU](?:acute|grave|uml);|[\u00AD\u0300-\u036F\u0483-\u0487\u0591-\u05BD\u064B-\u065E\u0670\u0900-\u0903"
    r"\u093C\u093E-\u094E\u0E30-\u0E3A\u0E47-\u0E4E])"
)
_ALNUM = rf"(?:{_PLAIN}|\d)"
_WORD = rf"{_LETTER}(?:{_LETTER}|\d)*(?:[.!?]{_LETTER}(?:{_LETTER}|\d)*)*"
_APOS = r"(?:['\u0092\u2019]|&apos;)"
_APOS_LIKE = rf"(?:{_APOS}|[`\u0091\u2018\u201B])"
_NUM = r"(?:\d*(?:[.:,\u00AD\u066B\u066C]\d+)+|\d+(?:[.:,\u00AD\u066B\u066C]\d+)*)"
_NUMBER = rf"[-+]?{_NUM}"
_HYPHEN = r"[-_\u058A\u2010\u2011]"
_FIRST = rf"(?:[dDoOlL]{_APOS_LIKE}{_ALNUM})?"
_THING = rf"{_FIRST}{_ALNUM}+(?:{_HYPHEN}{_FIRST}{_ALNUM}+)*"


_SGML = (
    r"<(?:[!?][A-Za-z-][^>\r\n]*|[A-Za-z][A-Za-z0-9_:.-]*(?: +(?:[A-Za-z][A-Za-z0-9_:.-]* *= *(?:'[^']*'|\"[^\"]*\"|"
    r"[A-Za-z][A-Za-z0-9_:.-]*)|[A-Za-z][A-Za-z0-9_:.-]*))* *(?:/ *)?|/[A-Za-z][A-Za-z0-9_:.-]* *)>"
)
_REDAUX = rf"{_APOS}(?:[msdMSD]|(?i:re|ve|ll))"
_NOT = rf"(?i:n){_APOS_LIKE}(?i:t)"
_APOWORD = (
    rf"{_APOS}(?i:n){_APOS}?|[lLdDjJ]{_APOS}|(?i:Dunkin|somethin|ol){_APOS}|{_APOS}(?i:em|till?|cause)"
    rf"|[A-HJ-XZn]{_APOS_LIKE}{_PLAIN}{{2,}}|{_APOS}[2-9]0(?i:s)|{_PLAIN}+[aeiouyAEIOUY]{_APOS_LIKE}[aeiouA-Z]{_PLAIN}*"
    r"|(?i:cont'd\.?|nor'easter|c'mon|e'er|s'mores|ev'ry|li'l|nat'l)"
)
_MONTH = "Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Mon|Tues?|Wed|Thurs?|Thu|Fri"
_STATE = (
    r"Ala|Ariz|(?-i:[A])z|(?-i:[A])rk|Calif|Colo|Conn|Ct|Dak|(?-i:[D])el|Fla|Ga|(?-i:[I])ll|Ind|Kans?|Ky|(?-i:[L])a"
    r"|(?-i:[M])ass|Md|Mich|Minn|(?-i:[M])iss|Mo|Mont|Neb|Nev|Okla|(?-i:[O])re|(?-i:[P])a|Penn|Tenn|(?-i:[T])ex|Va|Vt"
    r"|(?-i:[W])ash|Wisc?|Wyo"
)
_COMPANY = "Inc|Cos?|Corp|Pp?t[ye]s?|Ltd|Plc|Rt|Bancorp|Bhd|Assn|Univ|Intl|Sys"
_ABBREV1 = rf"(?i:(?:{_MONTH}|{_STATE}|{_COMPANY}|tel|est|ext|sq|Jr|Sr|Bros|(?:Ed|Ph)\.D|Esq|etc|al|seq|Bldg)\.)"
_ACRO2 = r"(?:[A-Za-z](?:\.[A-Za-z])+|(?i:(?:Canada|Sino|Korean|EU|Japan|non)-U\.S|U\.S\.-(?:U\.K|U\.S\.S\.R)))"
_TITLE = (
    r"Mr|Mrs|Ms|(?-i:[M])iss|Drs?|Profs?|Sens?|Reps?|Attys?|Lt|Col|Gen|Messrs|Govs?|Adm|Rev|Maj|Sgt|Cpl|Pvt|Mt|Capt"
    r"|Ste?|Ave|Pres|Lieut|Rt|Hon|Brig|Co?mdr|Pfc|Spc|Supts?|Det|Mt|Ft|Adj|Adv|Asst|Assoc|Ens|Insp|Mlle|Mme|Msgr|Sfc"
)
_ABBREV4 = (
    rf"(?:{_ACRO2}|[A-Za-z]|(?i:{_TITLE}|vs|Alex|Wm|Jos|Cie|a\.k\.a|cf|TREAS|Ph|Invt|Elec|Natl|M[ft]g|Dept|Blvd|Rd))"
)
_ABBREV3 = r"(?i:ca|figs?|prop|nos?|sect?s?|arts?|paras?|bldg|pp|op|approx|(?-i:[P][t])|rs)\."
_STARTS = (
    r"(?:[A](?i:bout|ccording|dditionally|fter|n|s|t)?|[B](?i:ut)|[D](?i:id|uring)|[E](?i:arlier)"
    r"|[H](?i:er|ere|e|owever|ow)|[I](?i:f|n|t)|[L](?i:ast)|[M](?i:any|ore|r\.|s\.)|[N](?i:ow)|[O](?i:nce|ne|ther|ur)"
    rf"|{_SGML}|[S](?i:he|ince|ome|o|uch)|[T](?i:hat|heir|hen|here|hese|hey|he|his)|[W](?i:e|hen|hile|hat|ho|hy)|[Y](?i:et|ou))"
)
_HFIRST = r"[A-Za-z0-9][A-Za-z0-9.,\u00AD]*"
_HTHING = rf"{_HFIRST}(?:-(?:{_ACRO2}\.|[A-Za-z0-9\u00AD]+))+"
_THING3 = r"[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}(?:\\?/[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}){1,2}"
_QUOTE = rf"(?:[`\u2018-\u201F\u0082\u0084\u0091-\u0094\u2039\u203A\u00AB\u00BB]{{1,2}}|{_APOS})"
_DOUBLE = r"(?:\"|&quot;|'')"
_FILE = (
    rf"{_ALNUM}+(?:\.{_ALNUM}+)*\.(?i:bat|bmp|bz2|c|class|cgi|cpp|dll|doc|docx|exe|gif|gz|h|htm|html|jar|java|jpeg|jpg"
    r"|mov|mp3|pdf|php|pl|png|ppt|ps|py|sql|tar|txt|wav|x|xml|zip)"
)
_PHONE = (
    r"(?:\([0-9]{2,3}\)[ \u00A0]?|(?:\+\+?)?(?:[0-9]{2,4}[- \u00A0])?[0-9]{2,4}[- \u00A0])"
    r"[0-9]{3,4}[- \u00A0]?[0-9]{3,5}"
    r"|(?:(?:\+\+?)?[0-9]{2,4}\.)?[0-9]{2,4}\.[0-9]{3,4}\.[0-9]{3,5}"
)
_URL = (
    r"(?:(?i:https?)://[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){},-]"
    r"|(?i:www)\.(?:[^ \t\n\f\r\"<>|.!?(){},]+\.)+[a-zA-Z]{2,4}(?:/[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){},-])?)"
)
_LABEL = r"[^ \t\n\f\r\"`'<>|.!?(){},-_$]+"
_DOMAIN = rf"(?!{_URL})(?:{_LABEL}\.)+(?i:com|net|org|edu)(?:/[^ \t\n\f\r\"<>|()]+[^ \t\n\f\r\"<>|.!?(){{}},-])?"
_USER = r"[a-zA-Z0-9][^ \t\n\f\r\"<>|()\u00A0{}]*"
_EMAIL = rf"{_USER}@(?:[^ \t\n\f\r\"<>|(){{}}.\u00A0]+\.)*[^ \t\n\f\r\"<>|(){{}}.\u00A0]+"
_SMILEY = r"[<>]?[:;=][-o*']?[()DPdpO\\{@|\[\]]"
_ASIAN_SMILEY = (
    r"[\^x=~<>]\.\[\^x=~<>]|[-\^x=~<>']_[-\^x=~<>']|\([-\^x=~<>'][_.]?[-\^x=~<>']\)|\([\^x=~<>']-[\^x=~<>'`]\)"
)
_SYMBOL = (
    r"[+%&~\^|\\\u00A6\u00A7\u00A8\u00A9\u00AC\u00AE\u00AF\u00B0-\u00B3\u00B4-\u00BA\u00D7\u00F7\u0387\u05BE\u2016\u2017"
    r"\u2020-\u2023\u2030-\u2038\u203B\u203E-\u2042\u2044\u207A-\u207F\u208A-\u208E\u2100-\u214F\u2190-\u21FF\u2200-\u2BFF"
    r"\u3012\u30FB\uFF01-\uFF0F\uFF1A-\uFF20\uFF3B-\uFF40\uFF5B-\uFF65]"
)


def _as_it_is(text: str) -> str:
    return text


def _soft(text: str) -> str:
    return text.replace("\u00ad", "")


def _quotes(text: str, left: bool = False) -> str:
    text = re.sub("&apos;|'", "`" if left else "'", text)
    text = re.sub('"|&quot;', "``" if left else "''", text)
    return "".join(_QUOTES.get(char, char) for char in text)


def _left_quotes(text: str) -> str:
    return _quotes(text, left=True)


def _brackets(text: str) -> str:
    return "".join(_BRACKETS.get(char, char) if char in "()" else char for char in text)


def _spaces(text: str) -> str:
    return text.replace(" ", "\u00a0")


# Rules in their order: the token, what must follow, and what becomes of the token; how much of it is left to be scanned
# again, if not nothing.
_RULES: list[tuple[str, str, Callable[[str], str], int]] = [
    (r"(?i:c\+\+|[cf]#)", "", _as_it_is, 0),
    (r"(?i:cannot|'twas)", "", _as_it_is, 3),
    (rf"(?:{_APOS}(?i:tis)|(?i:gonna|gotta|lemme|gimme|wanna))", "", _as_it_is, 2),
    (_SGML, "", _spaces, 0),
    (r"(?:&(?i:MD|mdash|ndash);|[\u0096\u0097\u2013\u2014\u2015])", "", lambda text: "--", 0),
    ("(?i:&amp;)", "", lambda text: "&", 0),
    (r"(?i:&(?:HT|TL|UR|LR|QC|QL|QR|odq|cdq|#[0-9]+);)", "", _as_it_is, 0),
    (_WORD, _REDAUX, _soft, 0),
    (r"(?:(?:(?![nN])[A-Za-z]|[nN](?!" + _APOS_LIKE + r"[tT])|\u00AD)*[A-MO-Za-mo-z]\u00AD*)", _NOT, _soft, 0),
    (_WORD, "", _soft, 0),
    (_APOWORD, "", _as_it_is, 0),
    (rf"(?i:y){_APOS}", _PLAIN, _as_it_is, 0),
    (_URL, "", _as_it_is, 0),
    (_DOMAIN, "", _as_it_is, 0),
    (_EMAIL, "", _as_it_is, 0),
    (rf"(?:[@\uFF20][a-zA-Z_][a-zA-Z_0-9]*|[#\uFF03]{_LETTER}+)", "", _as_it_is, 0),
    (_REDAUX, r"[^A-Za-z]", _quotes, 0),
    (_NOT, r"[^A-Za-z]", _quotes, 0),
    (r"\d{1,2}[-/]\d{1,2}[-/]\d{2,4}", "", _as_it_is, 0),
    (_NUMBER, "", _soft, 0),
    (r"[\u207A\u207B\u208A\u208B]?(?:[\u2070\u00B9\u00B2\u00B3\u2074-\u2079]+|[\u2080-\u2089]+)", "", _as_it_is, 0),
    (r"(?:\d{1,4}[- \u00A0])?\d{1,4}(?:\\?/|\u2044)\d{1,4}", "", _spaces, 0),
    (r"[\u00BC\u00BD\u00BE\u2153-\u215E]", "", lambda text: _FRACTIONS.get(text, text), 0),
    (
        rf"(?:-(?i:RRB|LRB|RCB|LCB|RSB|LSB)-|(?i:C\.D\.s|pro-|anti-|S(?:&|&amp;)P-500|S(?:&|&amp;)Ls|Cap{_APOS}n"
        rf"|c{_APOS}est))",
        "",
        lambda text: text.replace("&amp;", "&"),
        0,
    ),
    (_THING3, "", _as_it_is, 0),
    (r"(?:[A-Z]*\$|#)", "", _as_it_is, 0),
    (
        r"[\u00A2\u00A3\u00A4\u00A5\u0080\u20A0\u20AC\u060B\u0E3F\u20A4\uFFE0\uFFE1\uFFE5\uFFE6]",
        "",
        lambda text: _CURRENCIES.get(text, text),
        0,
    ),
    (r"[A-Za-z]\.", rf"{_SPACE}+{_STARTS}(?:{_SPACE}|[?!])", _as_it_is, 1),
    (rf"{_ACRO2}\.", rf"{_SPACE}+{_STARTS}(?:{_SPACE}|[?!])", _as_it_is, 0),
    (_ABBREV3, rf"{_SPACE}?\d", _as_it_is, 0),
    (_ABBREV1, "(?s:..?)?", _as_it_is, 0),
    (rf"{_ABBREV4}\.", "", _as_it_is, 0),
    (rf"{_APOS}[0-9][0-9]", _SPACE, _as_it_is, 0),
    (_FILE, rf"(?:{_SPACE}|[.?!,])", _as_it_is, 0),
    (rf"(?:{_WORD})\.", r"[,;:\u3001]", _soft, 0),
    (_PHONE, "", lambda text: _spaces(_brackets(text)), 0),
    (_DOUBLE, r"[A-Za-z0-9$]", _left_quotes, 0),
    (_DOUBLE, "", _quotes, 0),
    (r"(?:<|(?i:&lt;))", "", lambda text: "<", 0),
    (r"(?:>|(?i:&gt;))", "", lambda text: ">", 0),
    (_SMILEY, r"[^A-Za-z0-9]", _brackets, 0),
    (_ASIAN_SMILEY, "", _brackets, 0),
    (r"[{}\[\]()]", "", lambda text: _BRACKETS[text], 0),
    (r"-+", "", lambda text: "--" if 3 <= len(text) <= 4 else text, 0),
    (r"(?:\.\.\.+|[\u0085\u2026])", rf"\.{_SPACE}+{_PLAIN}", lambda text: "...", 0),
    (r"(?:\.\.\.+|[\u0085\u2026]|\.[ \u00A0](?:\.[ \u00A0])+\.)", "", lambda text: "...", 0),
    (r"(?:@+|#+|_+)", "", _as_it_is, 0),
    (r"(?:\*+|(?:\\\*){1,3})", "", _as_it_is, 0),
    (r"[,;:\u3001]", "", _as_it_is, 0),
    (r"[?!]+", "", _as_it_is, 0),
    (r"[.\u00A1\u00BF\u037E\u0589\u061F\u06D4\u0700-\u0702\u07FA\u3002]", "", _as_it_is, 0),
    (r"=", "", _as_it_is, 0),
    (r"/", "", _as_it_is, 0),
    (rf"{_HTHING}\.", r"[,;:\u3001]", _soft, 0),
    (_HTHING, "", _soft, 0),
    (rf"(?:{_THING})\.", r"[,;:\u3001]", _as_it_is, 0),
    (_THING, "", _as_it_is, 0),
    (r"[A-Z]+(?:(?:[+&]|(?i:&amp;))[A-Z]+)+", "", lambda text: text.replace("&amp;", "&"), 0),
    ("'", rf"{_PLAIN}[^ \t\n\u00A0\u2000-\u200A\u3000]", _left_quotes, 0),
    (_QUOTE, "", _quotes, 0),
    (_REDAUX, "", _quotes, 0),
    (_NOT, "", _quotes, 0),
    (r"(?:<<|>>)", "", _as_it_is, 0),
    (_SYMBOL, "", _as_it_is, 0),
    (rf"(?:{_SPACE}+|[\0\u200B-\u200F\uFEFF]|&nbsp;)", "", lambda text: "", 0),
]
# Rules → a character of all that they match; and a run of characters. If a rule matches nothing where a run begins,
# it matches nothing within it either. Without these, the time would grow by the square of the length of a text.
_BARREN = {
    _SGML: (">", r"<[!?][A-Za-z-][^>\r\n]*"),
    _DOMAIN: (".", rf"(?!{_URL})(?:{_LABEL}\.)*{_LABEL}"),
    _EMAIL: ("@", _USER),
    rf"{_HTHING}\.": ("-", _HFIRST),
    _HTHING: ("-", _HFIRST),
}
_BREAKS = re.compile(r"[\n\r\v\f\u2028\u2029]")
_QUICK = re.compile(r"(?!(?i:cannot|gonna|gotta|lemme|gimme|wanna)\b)[A-Za-z]+(?=[ \n])")


_Rule = tuple[re.Pattern[str], re.Pattern[str], Callable[[str], str], int, re.Pattern[str] | None]


@cache
def _compiled(missing: str) -> list[_Rule]:
    """The rules, compiled when captions are first read, without those that need a missing character."""
    return [
        (
            re.compile(f"(?:{token})(?={after})" if after else token),
            re.compile(after),
            become,
            back,
            re.compile(_BARREN[token][1]) if token in _BARREN else None,
        )
        for token, after, become, back in _RULES
        if token not in _BARREN or _BARREN[token][0] not in missing
    ]


def scan(text: str) -> list[str]:
    """The tokens of a text without line breaks, punctuation among them, in lower case."""
    text += "\n"  # what ends a line may be what must follow
    place, tokens = 0, []
    rules = _compiled("".join(char for char in ">.@-" if char not in text))
    barren_to: dict[re.Pattern[str], int] = {}
    while place < len(text):
        quick = _QUICK.match(text, place)
        if quick is not None:
            tokens.append(quick.group().lower())
            place = quick.end() + 1
            continue
        best, end, token = 0, place + 1, ""
        for rule, after, become, back, barren in rules:
            if barren is not None and place < barren_to.get(rule, 0):
                continue
            match = rule.match(text, place)
            if match is None:
                if barren is not None and (nothing := barren.match(text, place)):
                    barren_to[rule] = nothing.end()
                continue
            follows = after.match(text, match.end())
            length = (follows.end() if follows is not None else match.end()) - place
            if length > best:
                best, end = length, match.end() - back
                token = become(text[place:end])
        if token:
            tokens.append(token.lower())
        place = end
    return tokens


@lru_cache(maxsize=1 << 16)
def caption_words(text: str) -> str:
    """A caption as COCO's evaluation compares it: lower case, tokens joined with spaces, without punctuation.

    Args:
        text: Any text; a line break counts as a space.
    """
    line = _BREAKS.sub(" ", text).strip()
    return " ".join(token for token in scan(line) if token not in PUNCTUATION)
