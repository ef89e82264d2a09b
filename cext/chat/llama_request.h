/* A request as llama-server reads it. */
#ifndef GGTOK_CHAT_LLAMA_REQUEST_H
#define GGTOK_CHAT_LLAMA_REQUEST_H

#include "chat/policy.h"

typedef enum continuation { NOT_CONTINUED, CONTINUES, IN_CONTENT, IN_REASONING } continuation;

typedef struct llama_request {
    jinja_list *given_messages;
    chat_message *messages;
    uint32_t n_messages, n_written; /* n_written: without a message that is continued */
    jinja_list *tools;              /* NULL: none */
    jinja_dict *given;              /* the caller's variables */
    jinja_value schema;             /* for the family's variable; JINJA_ABSENT: none */
    bool thinking, generation;
    continuation continues;
    chat_message last; /* the last message, before white space is trimmed */
} llama_request;

/* Reads the job's body with llama-server's checks, in its order. */
void ggtok_chat_read_llama_request(chat_run *r, llama_request *out);
/* Checks that llama-server makes after it has rendered. */
void ggtok_chat_check_logprobs(chat_run *r, const llama_request *q);
/* Whether a message has anything besides the role. */
bool ggtok_chat_has_content(const chat_message *m);

#endif
