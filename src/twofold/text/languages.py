"""Languages of texts, by their codes (ISO 639-1): which one a text is in, and the stop words and stems of each.

py3langid finds the language by sequences of letters, stop-words has lists of small words, snowballstemmer cuts endings.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from twofold.core.checks import InputError
from twofold.text.tokenize import normalize

MAX_LETTERS = 1000  # of a text by which its language is found
MIN_LETTERS = 20  # of a shorter text nothing is known
MIN_SHARE = 0.05  # of the letters, of a language that counts as one of a collection
VARIANTS = {"no": "nb", "nn": "nb", "wuu": "zh", "yue": "zh", "arz": "ar", "ary": "ar", "pcm": "en"}
NO_LANGUAGE = "zxx"  # says py3langid of numbers and program text


@functools.cache
def list_names() -> dict[str, str]:
    """English names by code, of the languages with stop words or stems here."""
    import snowballstemmer
    from stop_words import LANGUAGE_MAPPING

    more = {"hy": "armenian", "eu": "basque", "et": "estonian", "ga": "irish", "lt": "lithuanian", "ne": "nepali"}
    more |= {"sr": "serbian", "ta": "tamil", "yi": "yiddish", "eo": "esperanto"}
    stems = set(snowballstemmer.algorithms())
    return dict(LANGUAGE_MAPPING) | {code: name for code, name in more.items() if name in stems}


def name_language(code: str) -> str:
    """A language as it is called in English; its code if that is not known.

    >>> name_language("de"), name_language("mi")
    ('German', 'mi')
    """
    return list_names().get(code, code).title() if code in list_names() else code


def look_up(language: str) -> str | None:
    """The code of a language with stop words or stems here, given by its name or code."""
    wanted = language.strip().lower()
    codes = {name: code for code, name in list_names().items()}
    return codes.get(wanted, wanted if wanted in list_names() else None)


def find_code(language: str) -> str:
    """The code of a language that is given by its name or code.

    >>> find_code("German"), find_code("fr")
    ('de', 'fr')
    """
    found = look_up(language)
    if found is None and language.strip().lower() in _identifier().labels:
        return language.strip().lower()
    if found is None:
        names = ", ".join(sorted(list_names().values()))
        raise InputError(f"⟨language={language}⟩ is not known. Give a code such as de, or one of {names}.")
    return found


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


def find_languages(texts: Sequence[str], among: Sequence[str] = ()) -> list[str]:
    """The code of each text's language, "" where the text is too short to tell; with `among`, the best of these.

    >>> find_languages(["The cat sat on the mat, and the dog did not mind.", "Der Hund schläft im Garten.", "42"])
    ['en', 'de', '']
    """
    identifier, out = _identifier(), list[str]()
    for text in texts:
        part = text[:MAX_LETTERS]
        if sum(map(str.isalpha, part)) < MIN_LETTERS:
            out.append("")
        elif among:
            ranked = (VARIANTS.get(code, code) for code, _ in identifier.rank(part))
            out.append(next(code for code in ranked if code in among))
        else:
            code = identifier.classify(part)[0]
            out.append(VARIANTS.get(code, code).replace(NO_LANGUAGE, ""))
    return out


def list_languages(texts: Sequence[str]) -> dict[str, float]:
    """The languages of a collection and their shares of its letters, the commonest first; rare ones are mistakes."""
    letters = Counter[str]()
    for code, text in zip(find_languages(texts), texts, strict=True):
        letters[code] += min(len(text), MAX_LETTERS)
    letters.pop("", None)
    if not letters:  # texts that are short one by one
        joined = [" ".join(texts)[:MAX_LETTERS]]
        letters.update(code for code in find_languages(joined) if code)
    total = max(letters.total(), 1)
    main = {code: n for code, n in letters.most_common() if n >= MIN_SHARE * total}
    return {code: n / max(sum(main.values()), 1) for code, n in main.items()}


@functools.cache
def list_stop_words(code: str) -> frozenset[str]:
    """The stop words of a language, none if there is no list of it."""
    if code == "en":  # the library's list of English has computer, fire, bill and face
        from twofold.text.stop_words import english

        return english()
    from stop_words import LANGUAGE_MAPPING, get_stop_words

    code = VARIANTS.get(code, code)
    words = get_stop_words(code) if code in LANGUAGE_MAPPING else []
    return frozenset(normalize(word, True) for word in words)


def name_stemmer(code: str) -> str | None:
    """The name of a language's stemmer, None if there is none."""
    import snowballstemmer

    name = list_names().get(VARIANTS.get(code, code), "")
    return name if name in snowballstemmer.algorithms() else None
