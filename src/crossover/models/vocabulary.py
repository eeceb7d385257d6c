"""Built-in text to train the tokenizer on where the user gives none: common English words, drawn by their
rank."""

from __future__ import annotations

import numpy as np

_WORDS = """
the of and to in is that for it as was with be by on not he this are or his from at which but have an had they
you were there one all we can her has will more when no if out so said what up its about into than them could
time only other new some these two may then do first any my now such like our over man me even most made after
also did many before must through back years where much your way well down should because each just those
people how too little state good very make world still own see men work long get here between both life being
under never day same another know while last might us great old year off come since against go came right used
take three model server answer question context cache memory token request system number words read write
language engine measure reason result example problem change small large high low part place point hand house
water light power group case fact week company program government school country city name line home move live
believe hold bring happen provide sit stand lose pay meet include continue set learn lead understand watch
follow stop create speak allow add spend grow open walk win offer remember love consider appear buy wait serve
die send expect build stay fall cut reach kill remain suggest raise pass sell require report decide pull
history morning reason research girl guy moment air teacher force education foot boy age policy everything
process music market sense nation plan college interest death experience effect use class control field
development role effort rate heart drug show leader voice wife whole police mind church finally return free
military explain possible question several early however important public able human local sure something
political service
"""
_SENTENCES = 4000
_WORDS_PER_SENTENCE = 12


def training_text() -> str:
    """Returns the text, always the same: the word of rank r is drawn with a weight of 1 / r (Zipf's law)."""
    words = list(dict.fromkeys(_WORDS.split()))
    weights = 1.0 / np.arange(1, len(words) + 1)
    cumulative = np.cumsum(weights) / weights.sum()
    count = _SENTENCES * _WORDS_PER_SENTENCE
    uniform = (np.random.PCG64(0).random_raw(count) >> np.uint64(11)) * 2.0**-53
    drawn = [words[index] for index in np.searchsorted(cumulative, uniform)]
    sentences = (drawn[start : start + _WORDS_PER_SENTENCE] for start in range(0, count, _WORDS_PER_SENTENCE))
    return "\n".join(" ".join(sentence).capitalize() + "." for sentence in sentences)
