"""Chat as in llama-server: from the body of a request to a prompt and its ids.

The flow of data::

    keywords, body -> request -> messages -> caps, handlers -> engine -> prompt -> ids
                      (checks)  (as the     (what the         (jinja)   (BOS, EOS,
                                 template    template                    continued
                                 gets them)  supports)                   answer)

- `keywords` checks the names of keyword arguments.
- `values` converts Python values to what their JSON means to the server.
- `request` reads and checks the fields of a request.
- `messages` converts messages for the template.
- `caps` and `reasoning` find out by test renderings what a template supports.
- `handlers` has the server's special rules for families of templates.
- `server` puts these steps in order.
- `prompt` is text that records which parts the template wrote.
- `encode` converts a prompt to ids.
- `transformers` replaces the steps from messages to prompt by those of transformers.
- `files` reads the templates and special tokens of a tokenizer's file.
- `plan` compiles a request for the C code, which runs all steps in one call.
- `api` implements the chat methods of the Tokenizer.

**No injection.** A template writes control tokens (``<|im_start|>``) around messages. If the
rendered text were simply parsed, a message that contains such a text would end its own turn and
begin another. So control tokens are parsed only in text that the template itself wrote. Searching
the messages for such texts beforehand would not be enough, because a template may join, trim or
escape pieces of text. Inserting marks into messages would change the template's decisions
(``'</think>' in content``). Instead, the engine tracks for each byte of its output whether it is
the template's own, and a control token is parsed only if all of its bytes are. The template's own
text is: its text and string constants, the vocabulary's ``bos_token`` and the like, the roles of
`prompt.ROLES`, and text that the preparation adds. All text from messages, tools, documents and
other variables isn't. The result of an operation that isn't tracked counts as not the template's
own. So a gap in the tracking can lose a control token, but never create one. With
``trusted=True``, all text counts as the template's own, as in llama-server.

These control tokens are ``Tokenizer.special_ids``. Other user-defined tokens are parsed
everywhere, as in llama.cpp, unless the caller passes ``user_defined="plain"``. The raw text
between two special tokens is tokenized as a whole, whoever wrote its parts. So the ids of a
harmless conversation are those of the rendered text.
"""
