"""Chat as llama-server does it: from the body of a request to a prompt and its ids.

The way of the data::

    keywords, body -> request -> messages -> caps, handlers -> engine -> prompt -> ids
                      (refusals) (as the     (what the         (jinja)   (ends,
                                  template    template takes;            continued
                                  gets them)  what its family            answer)
                                              changes)

`values` says what Python values mean (what their JSON means to the server), `request` what a
body may hold, `messages` what a template gets of its messages, `caps` and `reasoning` what is
found out about a template by probe renderings, `handlers` what the server does for families of
templates, `server` puts these in order, `keywords` checks the names of arguments, `prompt` is
text that knows who wrote it, `encode` turns it into ids. `transformers` goes another way from
messages to a prompt: transformers'. `files` says what a tokenizer's file has for chats, `api` is
what `methods`, the chat calls of the Tokenizer, are made of.

**No injection.** A template writes control tokens (``<|im_start|>``) around what people say.
Rendered and then parsed, a message that holds such a text would end its own turn and begin
another. So control tokens are parsed only where the template wrote them. To look for their texts
in the messages beforehand wouldn't do: a template may join, trim or escape pieces into one, and
marks put into messages would change what the template decides (``'</think>' in content``).
Instead the engine knows of each byte of its output whether it is the template's, and a control
token is one only if all of its bytes are. The template's are its text and string constants, the
vocabulary's ``bos_token`` and the like, roles of `prompt.ROLES`, and what preparation adds.
Nothing else is: whatever comes from messages, tools, documents and other variables, by any name.
What an operation makes in a way that isn't traced counts as not the template's, so a gap in the
tracing can lose a control token, never make one. ``trusted=True`` takes all text for the
template's, as llama-server does.

Which tokens these are, the vocabulary knows (``Tokenizer.special_ids``). Other user-defined
tokens are found everywhere, as in llama.cpp, unless the caller says ``user_defined="plain"``. The
raw text between special tokens is tokenized in one piece wherever it comes from: the ids of a
harmless conversation are those of the rendered text.
"""
