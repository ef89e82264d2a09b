/* The internal headers that the Python module uses; its other files include only this one and public
 * headers (tests/test_architecture.py). */
#ifndef GGTOK_PYTHON_INTERNAL_H
#define GGTOK_PYTHON_INTERNAL_H

#include "arrow/ids.h"
#include "arrow/texts.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/mem.h"
#include "chat/policy.h"
#include "jinja/core/env.h"
#include "jinja/core/jinja.h"
#include "unicode/utf8.h"

#endif
