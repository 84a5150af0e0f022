"""The languages of settings as FLORES-200 codes, for NLLB-CLIP's tokenizers."""

from __future__ import annotations

import re
from typing import Any

from testbed.errors import UnsupportedError

CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
# CLIP benchmark's codes for NLLB-CLIP; Chinese is the traditional script.
CODES = {
    "ar": "arb_Arab",
    "bn": "ben_Beng",
    "cn": "zho_Hant",
    "cs": "ces_Latn",
    "da": "dan_Latn",
    "de": "deu_Latn",
    "el": "ell_Grek",
    "en": "eng_Latn",
    "es": "spa_Latn",
    "fa": "pes_Arab",
    "fi": "fin_Latn",
    "fil": "tgl_Latn",
    "fr": "fra_Latn",
    "he": "heb_Hebr",
    "hi": "hin_Deva",
    "hr": "hrv_Latn",
    "hu": "hun_Latn",
    "id": "ind_Latn",
    "it": "ita_Latn",
    "ja": "jpn_Jpan",
    "jp": "jpn_Jpan",
    "ko": "kor_Hang",
    "mi": "mri_Latn",
    "nl": "nld_Latn",
    "no": "nno_Latn",
    "pl": "pol_Latn",
    "pt": "por_Latn",
    "quz": "quy_Latn",
    "ro": "ron_Latn",
    "ru": "rus_Cyrl",
    "sv": "swe_Latn",
    "sw": "swh_Latn",
    "te": "tel_Telu",
    "th": "tha_Thai",
    "tr": "tur_Latn",
    "uk": "ukr_Cyrl",
    "vi": "vie_Latn",
    "zh": "zho_Hant",
    "zhm": "yue_Hant",
}


def flores_code(language: str) -> str:
    """The FLORES-200 code of a language; a code is returned unchanged; raises UnsupportedError if there is none."""
    if CODE.fullmatch(language):
        return language
    try:
        return CODES[language]
    except KeyError:
        raise UnsupportedError(
            f"no FLORES-200 code is known for the language {language!r}; the tokenizer supports {', '.join(CODES)}, and"
            " codes such as eng_Latn"
        ) from None


def nllb_tokenizer(tokenizer: Any, code: str) -> Any:
    """Returns open_clip's tokenizer of an NLLB-CLIP model, set to a language.

    Args:
        tokenizer: open_clip's; it is changed, and returned.
        code: A FLORES-200 code.

    Raises:
        UnsupportedError: If the vocabulary has no such language.
    """
    inner = tokenizer.tokenizer
    number = inner.convert_tokens_to_ids(code)
    if number is None or number == inner.unk_token_id:
        raise UnsupportedError(f"the tokenizer does not support the language {code}")
    # open_clip's own set_language is undone by transformers, which goes back to src_lang at every call.
    inner.src_lang = code
    return tokenizer
