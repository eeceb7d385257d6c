"""A tokenizer for clients that want one where prompts are counted in words: each word is one token, whatever it is."""

from __future__ import annotations

import json
from pathlib import Path


def write_word_tokenizer(folder: Path) -> Path:
    """Writes the files of a tokenizer that counts as `{"kind": "words"}` of a workload does; returns the folder."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.WordLevel({"<word>": 0}, unk_token="<word>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    template = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<word>",
        "pad_token": "<word>",
        "eos_token": "<word>",
        "chat_template": template,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return folder
