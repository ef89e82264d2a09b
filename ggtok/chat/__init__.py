"""Converts chat messages, with the options of a request, to a prompt and its ids.

C has the rules (cext/chat/). Every request takes the same path::

    keywords -> ChatOptions -> ChatCall -> C: read, render, finish, encode -> text, ids or prompt

- `api` implements the chat methods of the Tokenizer.
- `options` has the keyword arguments, and checks those that aren't part of the request.
- `compiled` has compiled templates and their cache, which is bounded in bytes.
- `prompt_ids` computes masks and continues known ids; `prompt` has a prompt with the ranges of its
  parts; `media` counts images, audio and video.

C reads dicts, lists, tuples, str, numbers, bool and None in place. For an object of another type
(a mapping, a pydantic model), it calls ``native.chat_calls.plain``, which converts it. JSON text is
parsed without the GIL.

**No injection.** A template writes control tokens (``<|im_start|>``) around messages. If the
rendered text were simply parsed, a message that contains such a text would end its own turn and
begin another. So control tokens are parsed only in text that the template itself wrote. Searching
the messages for such texts beforehand would not be enough, because a template may join, trim or
escape pieces of text. Inserting markers into messages would change the template's decisions
(``'</think>' in content``). Instead, the engine tracks for each byte of its output where it came
from, and a control token is parsed only if all of its bytes are the template's own. The template's
own text comprises its text and string constants, the vocabulary's ``bos_token`` and the like,
common roles, and text that the preparation adds, but no text from messages, tools, documents or
other variables. The result of an operation that isn't tracked counts as not the template's own. So
a gap in the tracking can lose a control token, but never create one. With ``trusted=True``, all
text counts as the template's own, as in llama-server.

These control tokens are ``Tokenizer.special_ids``. Other user-defined tokens are parsed
everywhere, as in llama.cpp, unless the caller passes ``user_defined="plain"``. The raw text
between two special tokens is tokenized as a whole, whoever wrote its parts. So the ids of a
harmless conversation are those of the rendered text.
"""
