"""The constants from cext/python/chat.h, for ``Native.chat``."""

from __future__ import annotations

from ggtok.native.library import lib

# Values of `want`: what Native.chat returns for each conversation.
IDS: int = lib.GGTOK_CHAT_IDS
COUNT: int = lib.GGTOK_CHAT_COUNT
TEXT: int = lib.GGTOK_CHAT_TEXT
PROMPT: int = lib.GGTOK_CHAT_PROMPT
PROMPTS: int = lib.GGTOK_CHAT_PROMPTS

# Flags that control how messages are prepared, rendered and encoded.
TYPED: int = lib.GGTOK_CHAT_TYPED
NO_DEVELOPER: int = lib.GGTOK_CHAT_NO_DEVELOPER
NO_SYSTEM: int = lib.GGTOK_CHAT_NO_SYSTEM
NO_REASONING: int = lib.GGTOK_CHAT_NO_REASONING
PREFILL: int = lib.GGTOK_CHAT_PREFILL
PREPARE_ALL: int = lib.GGTOK_CHAT_PREPARE_ALL
PREPARED: int = lib.GGTOK_CHAT_PREPARED
OWN_MESSAGES: int = lib.GGTOK_CHAT_OWN_MESSAGES
GENERATION: int = lib.GGTOK_CHAT_GENERATION
BOTH: int = lib.GGTOK_CHAT_BOTH
TRUSTED: int = lib.GGTOK_CHAT_TRUSTED
UNTRACKED: int = lib.GGTOK_CHAT_UNTRACKED
