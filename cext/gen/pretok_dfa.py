"""Writes cext/pretok/dfa.inc: one automaton per row of pretok_patterns.py.

A pattern is compiled to a program for a backtracking matcher. A state of the automaton is the list
of positions in the program where such a matcher could be, in the order in which it would try them;
a match drops all positions after it. So the last match found is the one that the backtracking
matcher returns. docs/design/pretokenizers.md, section "The automata", explains this and the
encoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pretok_patterns import (
    BOUNDED,
    FAST_PATTERNS,
    FUSED,
    MEMO,
    PATTERNS,
    WINDOWS,
    Fused,
    Pattern,
    Windows,
)
from pretok_regex import Alt, Chars, CharSet, End, Look, Node, Parser, Repeat, Seq
from unicode_tables import classes, header, props, table

OUTPUT = Path(__file__).parents[1] / "pretok" / "dfa.inc"

# The alphabet of all patterns: ASCII characters one by one, then classes of code points, then the
# end of the text. Its elements are called letters. Sets of letters are bit masks.
N_ASCII = 128
CLASS_OF, CLASS_FIRST = classes()
# One code point for each letter. (Classes of ASCII characters are never looked up.)
LETTERS = [*range(N_ASCII), *CLASS_FIRST]
END = len(LETTERS)
ALL = (1 << END) - 1

# Encoding of a transition, as in pretok/scan.h.
SAVE, ENTER_MEMO, STOP = 0x4000, 0x8000, 0xC000
STOP_HERE, STOP_SAVED, STOP_DECODE, STOP_BACK = STOP, STOP + 1, STOP + 2, STOP + 3
COLUMN_DECODE, COLUMN_END, COLUMN_FIRST = 0, 1, 2


class Step(NamedTuple):
    """An instruction: consume a letter of `mask` or, with `look`, only check the next letter; then
    go to `goto`."""

    mask: int
    look: bool
    goto: int


class Split(NamedTuple):
    goto: list[int]  # in order of preference


class Match(NamedTuple):
    pass


def mask_of(chars: CharSet) -> int:
    mask = 0
    for i, cpt in enumerate(LETTERS):
        if (cpt, props(cpt)) in chars:
            mask |= 1 << i
    return mask


class Program:
    def __init__(self, tree: Node) -> None:
        self.code: list[Step | Split | Match] = [Match()]
        self.start = self._emit(tree, 0)

    def _add(self, instruction: Step | Split | Match) -> int:
        self.code.append(instruction)
        return len(self.code) - 1

    def _emit(self, node: Node, goto: int) -> int:
        """Emits instructions for `node` that continue at `goto`; returns where they start."""
        match node:
            case Chars(chars):
                return self._add(Step(mask_of(chars), False, goto))
            case Look(chars, negated):
                mask = mask_of(chars)
                return self._add(Step(~mask & (ALL | 1 << END) if negated else mask, True, goto))
            case End():
                return self._add(Step(1 << END, True, goto))
            case Seq(parts):
                for part in reversed(parts):
                    goto = self._emit(part, goto)
                return goto
            case Alt(options):
                return self._add(Split([self._emit(option, goto) for option in options]))
            case Repeat(body, low, high):
                if high is None:
                    loop = self._add(Split([]))
                    self.code[loop] = Split([self._emit(body, loop), goto])
                    goto = loop
                else:
                    after = goto
                    for _ in range(high - low):
                        goto = self._add(Split([self._emit(body, goto), after]))
                for _ in range(low):
                    goto = self._emit(body, goto)
                return goto


State = tuple[int, ...]


@dataclass
class Dfa:
    """An automaton. next[s][x] is (accepts, state): whether a match ends before symbol x, and the
    state after x (DEAD: no match can continue)."""

    symbol: list[int]  # the symbol of each letter, END included
    next: list[list[tuple[bool, int]]] = field(default_factory=list)


DEAD = -1


def symbols(program: Program) -> tuple[list[int], list[int]]:
    """Merges letters that every instruction treats alike. Returns the symbol of each letter, and a
    letter for each symbol."""
    masks = [i.mask for i in program.code if isinstance(i, Step)]
    number: dict[object, int] = {}
    symbol, sample = [], []
    for letter in range(END + 1):
        key = letter == END, tuple(m >> letter & 1 for m in masks)
        if key not in number:
            number[key] = len(number)
            sample.append(letter)
        symbol.append(number[key])
    return symbol, sample


def determinize(program: Program) -> Dfa:
    code = program.code

    def follow(threads: State, letter: int | None) -> tuple[bool, list[int]]:
        """Follows splits (and lookaheads if the next letter is known), in order, up to the first
        match. Keeps one thread per position in the program: a second one could only fail where the
        first one failed."""
        out: list[int] = []
        seen: set[int] = set()
        stack = list(reversed(threads))
        while stack:
            pc = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            i = code[pc]
            if isinstance(i, Split):
                stack.extend(reversed(i.goto))
            elif isinstance(i, Step) and i.look and letter is not None:
                if i.mask >> letter & 1:
                    stack.append(i.goto)
            else:
                out.append(pc)
                if isinstance(i, Match):
                    return True, out
        return False, out

    symbol, sample = symbols(program)
    dfa = Dfa(symbol)
    number: dict[State, int] = {tuple(follow((program.start,), None)[1]): 0}
    queue = list(number)
    for state in queue:
        row = []
        for letter in sample:
            accepts, threads = follow(state, letter)
            steps = [code[pc] for pc in threads]
            after = tuple(i.goto for i in steps if isinstance(i, Step) and i.mask >> letter & 1)
            key = tuple(follow(after, None)[1])
            if letter == END or not key:
                row.append((accepts, DEAD))
                continue
            if key not in number:
                number[key] = len(number)
                queue.append(key)
            row.append((accepts, number[key]))
        dfa.next.append(row)
    return dfa


def minimize(dfa: Dfa) -> Dfa:
    """Merges states with equal futures, then symbols with equal columns."""
    group = [0] * len(dfa.next)
    count = 1
    while True:
        keys: dict[object, int] = {}
        group = [
            keys.setdefault(
                (group[s], tuple((a, t if t == DEAD else group[t]) for a, t in row)), len(keys)
            )
            for s, row in enumerate(dfa.next)
        ]
        if len(keys) == count:
            break
        count = len(keys)
    rows: dict[int, list[tuple[bool, int]]] = {}
    for s, row in enumerate(dfa.next):
        rows.setdefault(group[s], [(a, t if t == DEAD else group[t]) for a, t in row])
    table_ = [rows[g] for g in range(count)]  # the start state's group is 0
    columns: dict[object, int] = {}
    end = dfa.symbol[END]
    merged = [
        columns.setdefault((x == end, tuple(row[x] for row in table_)), len(columns))
        for x in range(len(table_[0]))
    ]
    keep = [merged.index(c) for c in range(len(columns))]
    return Dfa([merged[x] for x in dfa.symbol], [[row[x] for x in keep] for row in table_])


def has_gaps(dfa: Dfa) -> bool:
    """Whether there is a text at whose start nothing matches."""
    end = dfa.symbol[END]
    silent, stack = {0}, [0]  # states reachable without a match
    while stack:
        s = stack.pop()
        for x, (accepts, t) in enumerate(dfa.next[s]):
            if accepts or (s == 0 and x == end):
                continue
            if t == DEAD:
                return True
            if t not in silent:
                silent.add(t)
                stack.append(t)
    return False


def fuse(outer: Dfa, inner: Dfa) -> Dfa:
    """Combines two automata into one: `inner` scans each piece that `outer` produces
    (docs/design/pretokenizers.md)."""
    begins = [t for _, t in outer.next[0]]
    for row in outer.next[1:]:
        if not all(a for a, _ in row) or any(
            t != DEAD and begins[x] == DEAD for x, (_, t) in enumerate(row)
        ):
            raise SystemExit("the outer pattern does not isolate its characters")
    number: dict[tuple[int, int], int] = {}
    symbol = [
        number.setdefault(p, len(number)) for p in zip(outer.symbol, inner.symbol, strict=True)
    ]
    end = inner.symbol[END]

    # Whether outer's matches are runs: the kind of run to which a character belongs depends only on
    # the character.
    runs = all(t in (DEAD, begins[x]) for row in outer.next[1:] for x, (_, t) in enumerate(row))
    if runs and has_gaps(inner):
        raise SystemExit("gaps of the inner pattern would cross the ends of runs")
    if not runs:
        mine = {i for o, i in number if begins[o] != DEAD}
        reached, stack = {0}, [0]
        while stack:
            row = inner.next[stack.pop()]
            for t in {row[x][1] for x in mine} - reached:
                reached.add(t)
                stack.extend({t} - {DEAD})
        if DEAD in reached or not all(inner.next[s][end][0] for s in reached - {0}):
            raise SystemExit("the inner pattern may cut matches of the outer one")

    # States of the result: pairs of a state of outer (DEAD: outside its matches) and a state of
    # inner.
    states: dict[tuple[int, int], int] = {}
    queue: list[tuple[int, int]] = []

    def state(mode: int, s: int) -> int:
        if s == DEAD:
            return DEAD
        if (mode, s) not in states:
            states[mode, s] = len(states) + 1
            queue.append((mode, s))
        return states[mode, s]

    start = [(False, state(begins[o], inner.next[0][i][1])) for o, i in number]
    fused = Dfa(symbol, [start])
    for mode, s in queue:
        row = []
        for o, i in number:
            after = begins[o] if mode == DEAD else outer.next[mode][o][1]
            stays = (after == DEAD) == (mode == DEAD) and i != end
            accepts, to = inner.next[s][i if stays else end]
            row.append((accepts, state(after, to)))
        fused.next.append(row)
    return minimize(fused)


def silent_loops(dfa: Dfa) -> set[int]:
    """Returns the states on cycles on which nothing is accepted."""
    edges = [{t for a, t in row if not a and t != DEAD} for row in dfa.next]
    found = set()
    for s in range(len(edges)):
        reached, stack = set(), list(edges[s])
        while stack:
            t = stack.pop()
            if t not in reached:
                reached.add(t)
                stack.extend(edges[t])
        if s in reached:
            found.add(s)
    return found


def memo_state(pattern: Pattern | Fused, dfa: Dfa) -> int:
    """Returns the state whose positions the scanner remembers (for MEMO), or DEAD. Checks what the
    pattern's `lookahead` guarantees."""
    loops = silent_loops(dfa)
    if pattern.lookahead == BOUNDED and loops:
        raise SystemExit(
            f"{pattern.name}: a loop can read on without bound before it knows whether it matches: "
            "use MEMO, or ONCE with an argument (docs/design/pretokenizers.md)"
        )
    if pattern.lookahead != MEMO:
        return DEAD
    # The scanner records an interval of positions, so the loop must stay in one state, and leaving
    # the loop must mean failure or an immediate match.
    loops = {s for s in loops if any(t == s and not a for a, t in dfa.next[s])}
    if len(loops) != 1:
        raise SystemExit(f"{pattern.name}: {len(loops)} loops to remember")
    (state,) = loops
    for accepts, t in dfa.next[state]:
        failing = not accepts and t in (DEAD, state)
        if not failing and not accepts and not all(a for a, _ in dfa.next[t]):
            raise SystemExit(f"{pattern.name}: the loop can be left without a match")
    return state


def unsure(dfa: Dfa) -> list[bool]:
    """Returns, for each state, whether a scan that is in this state may end without finding another
    match."""
    result = [any(not a and t == DEAD for a, t in row) for row in dfa.next]
    while True:
        more = [
            u or any(not a and t != DEAD and result[t] for a, t in row)
            for u, row in zip(result, dfa.next, strict=True)
        ]
        if more == result:
            return result
        result = more


def symbol_of(c: str) -> int:
    """Returns the index in LETTERS of the letter to which the character belongs."""
    return ord(c) if ord(c) < N_ASCII else N_ASCII + CLASS_OF[ord(c)]


# ---- characters beyond ASCII in windows (pretok/scan.h, struct pretok_high) ----


class High(NamedTuple):
    leads: tuple[int, ...]
    planes: tuple[int, ...]


def high(windows: Windows, column: Callable[[str], int], by_class: Sequence[int]) -> High:
    """Classifies characters by their column, which is that of one of the sample characters in
    `windows`."""
    kind = {column(windows.letter): 1, column(windows.mark): 0}
    if windows.han:
        kind[column(windows.han)] = 3
    kinds = [kind.get(by_class[c], 2) if cpt > 0x7F else 0 for cpt, c in enumerate(CLASS_OF)]
    planes = []
    for block in range(0, 0x10000, 64):
        for bit in (1, 2):
            planes.append(sum(1 << i for i, k in enumerate(kinds[block : block + 64]) if k & bit))
    two = {0xC0 + i: range(0x40 * i, 0x40 * i + 0x40) for i in range(2, 0x20)}
    three = {0xE0 + i: range(max(0x1000 * i, 0x800), 0x1000 * i + 0x1000) for i in range(0x10)}
    whole = {
        lead for lead, cpts in {**two, **three}.items() if all(kinds[cpt] == 1 for cpt in cpts)
    }
    leads = tuple(
        sum(1 << row for row in range(4) if 0xC0 + 16 * row + low in whole) for low in range(16)
    )
    return High(leads, tuple(planes))


def encode_high(name: str, h: High) -> str:
    words = table(f"0x{word:X}" for word in h.planes)
    leads = ", ".join(map(str, h.leads))
    return (
        f"static const pretok_high {name} = {{\n"
        f"    .leads = {{{leads}}},\n    .planes = {{\n{words}\n}}}};\n"
    )


# ---- the rules: which alternative of a pattern matched (pretok/rules.c) ----

RULE_SPLIT, RULE_LOOK, RULE_NONE = 0xFFFF, 0x8000, 0xFFFF
RULE_STEPS = 2048  # maximum instructions of a program: PRETOK_RULE_STEPS
SET_WORDS, SET_END = 4, 255  # 64-bit words per set, and its bit for the end of the text


def alternatives(regex: str) -> list[str]:
    """Returns the alternatives of an expression: splits it at bars outside groups and sets."""
    found, depth, in_set = [""], 0, False
    for part in re.findall(r"\\.|.", regex, re.DOTALL):
        if part == "|" and not depth and not in_set:
            found.append("")
            continue
        found[-1] += part
        if in_set:
            in_set = part != "]"
        elif part == "[":
            in_set = True
        else:
            depth += (part == "(") - (part == ")")
    return found


def encode_rules(pattern: Pattern, tree: Node, sets: dict[int, int]) -> tuple[list[str], int, int]:
    """Returns the program that tells which alternative of the pattern matched: its instructions
    as lines of C, the size of its tables in bytes, and the index of the instruction where it
    starts. The first instructions accept, one for each alternative in order. Adds new character
    sets to `sets`."""
    options = tree.options if isinstance(tree, Alt) else [tree]
    texts = alternatives(pattern.regex)
    if len(texts) != len(options):
        raise SystemExit(f"{pattern.name}: {len(texts)} alternatives, parsed as {len(options)}")
    program = Program(Seq([]))
    program.code = [Match() for _ in options]
    program.start = program._add(
        Split([program._emit(option, end) for end, option in enumerate(options)])
    )
    steps: list[tuple[int, int, int]] = []
    more: list[tuple[int, int, int]] = []  # the second and further targets of splits
    for i in program.code:
        if isinstance(i, Split):
            link = RULE_NONE
            for goto in reversed(i.goto[1:]):
                more.append((RULE_SPLIT, goto, link))
                link = len(program.code) + len(more) - 1
            steps.append((RULE_SPLIT, i.goto[0], link))
        elif isinstance(i, Step):
            number = sets.setdefault(i.mask, len(sets))
            steps.append((number | (RULE_LOOK if i.look else 0), i.goto, RULE_NONE))
        else:
            steps.append((RULE_NONE, RULE_NONE, RULE_NONE))
    steps += more
    if len(steps) > RULE_STEPS:
        raise SystemExit(f"{pattern.name}: {len(steps)} instructions do not fit")
    name = pattern.name
    strings = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    text = [
        f"static const pretok_step {name}_steps[{len(steps)}] = {{",
        table(f"{{{a}, {b}, {c}}}" for a, b, c in steps),
        "};",
        f"static const char *const {name}_rules[] = {{",
        *(f'    "{string}",' for string in strings),
        "};\n",
    ]
    return text, 6 * len(steps) + sum(len(text) + 1 for text in texts), program.start


def encode_sets(sets: dict[int, int]) -> list[str]:
    if END > SET_END:
        raise SystemExit(f"{END} letters do not fit in a set")
    masks = [mask & ALL | (mask >> END & 1) << SET_END for mask in sets]
    words = [mask >> 64 * i & (1 << 64) - 1 for mask in masks for i in range(SET_WORDS)]
    return [
        "/* The sets of all rules: a bit for each letter. */",
        f"static const uint64_t rule_sets[{len(sets)}][PRETOK_SET_WORDS] = {{",
        table(
            "{" + ", ".join(f"0x{w:X}" for w in words[i : i + SET_WORDS]) + "}"
            for i in range(0, len(words), SET_WORDS)
        ),
        "};\n",
    ]


def encode(
    pattern: Pattern | Fused, dfa: Dfa, highs: dict[High, str], rules: str
) -> tuple[list[str], int]:
    """Returns the C text of the automaton's tables, and their size in bytes. Automata share equal
    tables for windows, which are collected in `highs`."""
    end = dfa.symbol[END]
    others = [x for x in range(len(dfa.next[0])) if x != end]
    column = {x: COLUMN_FIRST + i for i, x in enumerate(others)} | {end: COLUMN_END}
    width = COLUMN_FIRST + len(others)
    memo = memo_state(pattern, dfa)
    open_ = unsure(dfa)

    # States that are always entered with a match before the character, and left at once without a
    # match: the position to return to is one character back and needn't be saved.
    entered = [{a for row in dfa.next for a, t in row if t == s} for s in range(len(dfa.next))]
    back = {
        s
        for s, row in enumerate(dfa.next)
        if entered[s] == {True} and all(a or t == DEAD for a, t in row)
    }

    # Each state with which a match can begin has a second copy. Entering the copy means that the
    # previous match has just ended.
    begins = sorted({t for _, t in dfa.next[0] if t not in (DEAD, memo)})
    copy = {s: len(dfa.next) + i for i, s in enumerate(begins)}
    rows = [*range(len(dfa.next)), *begins]
    if width > 256 or len(rows) * width > SAVE:
        raise SystemExit(f"{pattern.name}: {len(rows)} states of {width} columns do not fit")

    def cell(state: int, symbol: int) -> int:
        accepts, to = dfa.next[state][symbol]
        if to == DEAD:
            if not accepts:
                return STOP_BACK if state in back else STOP_SAVED
            begin = dfa.next[0][symbol][1]
            return copy[begin] * width if begin in copy else STOP_HERE
        if accepts and open_[to] and to not in back:
            return SAVE + to * width
        if to == memo and state != memo:
            if accepts:
                raise SystemExit(f"{pattern.name}: enters its loop with a match not saved")
            return ENTER_MEMO + to * width
        return to * width

    cells = [c for s in rows for c in (STOP_DECODE, *(cell(s, x) for x in (end, *others)))]
    name = pattern.name
    by_class = [
        column[dfa.symbol[N_ASCII + i]] if cpt >= N_ASCII else 0
        for i, cpt in enumerate(CLASS_FIRST)
    ]
    memo_row = "PRETOK_NO_MEMO" if memo == DEAD else str(memo * width)
    text = []
    windows = ""
    if name in WINDOWS:
        h = high(WINDOWS[name], lambda c: column[dfa.symbol[symbol_of(c)]], by_class)
        if h not in highs:
            highs[h] = f"{name}_high"
            text.append(encode_high(highs[h], h))
        windows = f", .high = &{highs[h]}"
    text += [
        f"/* {name}: {len(dfa.next)} states and {len(begins)} copies, {width} columns */",
        f"static const uint16_t {name}_next[{len(cells)}] = {{",
        table(cells),
        "};",
        f"static const uint8_t {name}_ascii[256] = {{",
        table(column[dfa.symbol[i]] for i in range(N_ASCII)),
        "};",
        f"static const uint8_t {name}_class[{len(by_class)}] = {{",
        table(by_class),
        "};",
        f"static const pretok_scanner {name} = {{",
        f"    .cut = ggtok_pretok_dfa_cut, .next = {name}_next, .ascii = {name}_ascii,",
        f"    .class_ = {name}_class, .begin = {len(dfa.next) * width}, .memo_state = {memo_row}"
        + windows
        + rules,
        "};\n",
    ]
    return text, 2 * len(cells) + 256 + len(by_class)


def generate() -> str:
    text = []
    total = 0
    dfas: dict[str, Dfa] = {}
    trees: dict[str, Node] = {}
    known: dict[str, str] = {}
    for pattern in PATTERNS:
        same = known.setdefault(pattern.regex, pattern.name)
        if same != pattern.name:
            raise SystemExit(f"{pattern.name}: {same} has the same expression: use its chain")
    for pattern in (*PATTERNS, *FAST_PATTERNS):
        parser = Parser(pattern.regex, mixed=pattern.mixed or pattern in FAST_PATTERNS)
        dfa = minimize(determinize(Program(parser.tree)))
        if any(accepts for accepts, _ in dfa.next[0]):
            raise SystemExit(f"{pattern.name} matches the empty text: write a scanner")
        dfas[pattern.name] = dfa
        trees[pattern.name] = parser.tree
    for fused in FUSED:
        *outer, inner = (dfas[name] for name in fused.patterns)
        for dfa in reversed(outer):
            inner = fuse(dfa, inner)
        dfas[fused.name] = inner
    highs: dict[High, str] = {}
    sets: dict[int, int] = {}
    starts: dict[str, int] = {}
    for pattern in PATTERNS:
        c, size, starts[pattern.name] = encode_rules(pattern, trees[pattern.name], sets)
        text += c
        total += size
    text = encode_sets(sets) + text
    total += 8 * SET_WORDS * len(sets)
    for row in (*PATTERNS, *FUSED):
        rules = ""
        if row in PATTERNS:
            rules = (
                f',\n    .name = "{row.name}", .rules = {row.name}_rules,'
                f"\n    .steps = {row.name}_steps,"
                f"\n    .sets = rule_sets, .n_rules = sizeof {row.name}_rules / sizeof(char *),"
                f"\n    .n_steps = sizeof {row.name}_steps / sizeof(pretok_step), "
                f".first = {starts[row.name]}"
            )
        c, size = encode(row, dfas[row.name], highs, rules)
        text += c
        total += size
    total += sum(8 + 8 * len(h.planes) for h in highs)
    return header("pretok_dfa.py", f"{total} bytes of tables.") + "\n" + "\n".join(text)
