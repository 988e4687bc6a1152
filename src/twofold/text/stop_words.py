"""Stop words: of a language, in a file, or in a list."""

from __future__ import annotations

import os
from typing import Any

from twofold.core.checks import InputError
from twofold.io.encoding import decode
from twofold.io.open import read_bytes
from twofold.text.tokenize import normalize

# In groups by their function in a sentence, which keeps the list complete and short.
_ENGLISH = """
a an the this that these those such same other others another each every either neither both all any some no none
few fewer many more most much several less least enough own

i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves one ones oneself someone somebody something anyone anybody
anything everyone everybody everything noone nobody nothing who whom whose which what whoever whatever whichever

about above across after against along among amongst around as at before behind below beneath beside besides between
beyond by despite down during except for from in inside into like near of off on onto out outside over past per since
than through throughout till to toward towards under underneath unlike until unto up upon via with within without

and or but nor so yet if because although though while whereas whether unless once when whenever where wherever why
how however therefore thus hence moreover otherwise else then

am is are was were be been being have has had having do does did doing done can cannot could may might must shall
should will would ought used

not never ever always often sometimes seldom usually again also too very just only even still already almost quite
rather really perhaps maybe indeed instead anyway here there everywhere somewhere anywhere nowhere now soon later away
back together apart ahead further furthermore meanwhile nevertheless nonetheless namely mostly mainly especially

get gets got getting gotten go goes going gone went come comes came coming let lets make makes made making put puts
take takes took taken taking give gives gave given giving say says said saying see sees saw seen seeing know knows
knew known think thinks want wants wanted seem seems seemed become becomes became keep keeps kept

yes ok okay oh well etc eg ie re vs
"""
_SHORTENED = """
aren't can't couldn't daren't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't oughtn't shan't
shouldn't wasn't weren't won't wouldn't ain't let's y'all o'clock ma'am
"""
_SUBJECTS = "i you he she it we they who what that there here where when why how one someone everyone"
_ENDINGS = "'d 'll 'm 're 's 've"


def english() -> frozenset[str]:
    """Articles, pronouns, prepositions, conjunctions, auxiliaries and the commonest adverbs, with their short forms."""
    joined = {word + ending for word in _SUBJECTS.split() for ending in _ENDINGS.split()}
    short = {*_SHORTENED.split(), *joined}
    bare = {word.replace("'", "") for word in _SHORTENED.split()[:22]}  # without apostrophe: dont, isnt
    return frozenset({*_ENGLISH.split(), *short, *bare})


def stop_words_of(words: Any) -> frozenset[str]:
    """The words that `stop_words=` stands for: None, a language, the path of a file (a word a line), or the words."""
    if words is None:
        return frozenset()
    if isinstance(words, str) and words == "english":
        return english()
    if isinstance(words, str) and words.isalpha() and not os.path.exists(words):
        from twofold.text.languages import list_stop_words, look_up

        code = look_up(words)
        if code is not None and list_stop_words(code):
            return list_stop_words(code)
    if isinstance(words, (str, os.PathLike)):
        try:
            lines = decode(read_bytes(words), os.fspath(words))[0].decode().splitlines()
        except OSError as why:
            raise InputError(
                f'⟨stop_words={os.fspath(words)}⟩ is neither "english" nor a file that can be read '
                f"({why.strerror}). Give a file with a word a line, a list of words, or None."
            ) from None
        words = [line.partition("#")[0].strip() for line in lines]
    words = list(words)
    for at, word in enumerate(words):
        if not isinstance(word, str):
            raise InputError(f"stop_words[{at}] is {word!r}, not a word. Give a list of texts.")
    return frozenset(normalize(word, True) for word in words if word)
