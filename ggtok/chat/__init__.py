"""Converts chat messages, with the options of a request, to a prompt and its ids.

Every request takes the same path::

    options ─ policy.request ─► Request ─┐
    (Options)  (llama, transformers)     ├─ C: read, render, finish, encode ─► text or ids
    messages ────────────────────────────┘      │                ▲
                                                ▼                │
                                       messages that C doesn't read: policy.prepare

A policy decides what a request means. `llama.LlamaServer` follows llama-server, and
`transformers.Transformers` follows transformers' apply_chat_template. A policy turns the options
into a `Request`, which is cached by everything that it depends on. `Request.run` passes
conversations to C (cext/python/chat.c), which reads messages that are dicts of str, as nearly all
are. The policy prepares other messages (mappings, models, tool calls, ...) and messages that need
the rules for a template's family, and calls C again. If a prompt must be changed after rendering
(for a continued answer), C returns it with its ranges, `Prepared.finish` changes it, and `encode`
produces the ids.

- `api` implements the chat methods of the Tokenizer, and has the cache.
- `request` has the options of a request, the normalized request, and the steps above.
- `llama` and `transformers` are the policies.
- `messages` converts messages as llama-server does; `values` converts Python values to JSON's.
- `caps` and `reasoning` find out by test renderings what a template supports.
- `handlers` has llama-server's special rules for families of templates.
- `prompt` has text that records which parts the template wrote.
- `encode` converts a prompt to ids, computes masks, and continues known ids.

**No injection.** A template writes control tokens (``<|im_start|>``) around messages. If the
rendered text were simply parsed, a message that contains such a text would end its own turn and
begin another. So control tokens are parsed only in text that the template itself wrote. Searching
the messages for such texts beforehand would not be enough, because a template may join, trim or
escape pieces of text. Inserting markers into messages would change the template's decisions
(``'</think>' in content``). Instead, the engine tracks for each byte of its output whether it is
the template's own, and a control token is parsed only if all of its bytes are. The template's own
text comprises its text and string constants, the vocabulary's ``bos_token`` and the like, the
roles in `prompt.ROLES`, and text that the preparation adds, but no text from messages, tools,
documents or other variables. The result of an operation that isn't tracked counts as not the
template's own. So a gap in the tracking can lose a control token, but never create one. With
``trusted=True``, all text counts as the template's own, as in llama-server.

These control tokens are ``Tokenizer.special_ids``. Other user-defined tokens are parsed
everywhere, as in llama.cpp, unless the caller passes ``user_defined="plain"``. The raw text
between two special tokens is tokenized as a whole, whoever wrote its parts. So the ids of a
harmless conversation are those of the rendered text.
"""
