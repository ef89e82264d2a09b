/* The functions in jinja2's tables, grouped by file. */
#ifndef GGTOK_JINJA_PYTHON_FUNCTIONS_H
#define GGTOK_JINJA_PYTHON_FUNCTIONS_H

#include "jinja/python/dialect.h"

/* text.c: methods of str */
jinja_python_fn ggtok_jinja_py_title_filter, ggtok_jinja_py_strip, ggtok_jinja_py_lstrip,
    ggtok_jinja_py_rstrip, ggtok_jinja_py_find, ggtok_jinja_py_rfind, ggtok_jinja_py_index,
    ggtok_jinja_py_rindex, ggtok_jinja_py_count, ggtok_jinja_py_startswith, ggtok_jinja_py_endswith,
    ggtok_jinja_py_removeprefix, ggtok_jinja_py_removesuffix, ggtok_jinja_py_split,
    ggtok_jinja_py_rsplit, ggtok_jinja_py_splitlines, ggtok_jinja_py_partition,
    ggtok_jinja_py_rpartition, ggtok_jinja_py_replace, ggtok_jinja_py_join, ggtok_jinja_py_center,
    ggtok_jinja_py_ljust, ggtok_jinja_py_rjust, ggtok_jinja_py_zfill, ggtok_jinja_py_istitle,
    ggtok_jinja_py_format, ggtok_jinja_py_lower, ggtok_jinja_py_upper, ggtok_jinja_py_capitalize,
    ggtok_jinja_py_title, ggtok_jinja_py_swapcase, ggtok_jinja_py_casefold, ggtok_jinja_py_isalpha,
    ggtok_jinja_py_isdigit, ggtok_jinja_py_isalnum, ggtok_jinja_py_isspace, ggtok_jinja_py_islower,
    ggtok_jinja_py_isupper, ggtok_jinja_py_isascii;
/* list.c: filters for sequences, and methods of list and dict */
jinja_python_fn ggtok_jinja_pf_sort, ggtok_jinja_pf_dictsort, ggtok_jinja_pf_min,
    ggtok_jinja_pf_max, ggtok_jinja_pf_groupby, ggtok_jinja_pf_first, ggtok_jinja_pf_last,
    ggtok_jinja_pf_length, ggtok_jinja_pf_list, ggtok_jinja_pf_reverse, ggtok_jinja_pf_items,
    ggtok_jinja_pf_sum, ggtok_jinja_pf_join, ggtok_jinja_pm_items, ggtok_jinja_pm_keys,
    ggtok_jinja_pm_values, ggtok_jinja_pm_get, ggtok_jinja_pm_copy, ggtok_jinja_pm_list_index,
    ggtok_jinja_pm_list_count;
/* lazy.c: filters that are generators */
jinja_python_fn ggtok_jinja_pf_map, ggtok_jinja_pf_unique, ggtok_jinja_pf_batch,
    ggtok_jinja_pf_slice, ggtok_jinja_pf_select, ggtok_jinja_pf_reject, ggtok_jinja_pf_selectattr,
    ggtok_jinja_pf_rejectattr;
/* number.c: filters for numbers */
jinja_python_fn ggtok_jinja_pn_abs, ggtok_jinja_pn_int, ggtok_jinja_pn_float, ggtok_jinja_pn_round,
    ggtok_jinja_pn_filesizeformat;
jinja_text *ggtok_jinja_py_replaced(jinja_env *e, jinja_text *t, jinja_text *old, jinja_text *with,
                                    int64_t times);
/* Return the results of the filters batch and slice as lists of lists. ggtok_jinja_folded returns a
 * string in lower case unless `cased`, and other values unchanged. */
jinja_list *ggtok_jinja_batched(jinja_env *e, const jinja_value *v);
jinja_list *ggtok_jinja_sliced(jinja_env *e, const jinja_value *v);
jinja_value ggtok_jinja_folded(jinja_env *e, jinja_value v, bool cased);
jinja_list *ggtok_jinja_dict_pairs(jinja_env *e, const jinja_dict *dict);
/* Sorts pairs (or longer tuples) by their i-th items. */
jinja_list *ggtok_jinja_sorted_by(jinja_env *e, const jinja_list *rows, uint32_t i, bool cased,
                                  bool reverse);
/* Whether c is a word character of regular expressions: a letter, digit or combining mark of any
 * script. */
bool ggtok_jinja_is_word(uint32_t c);

#endif
