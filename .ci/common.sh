# Shared by the parts of CI: scripts in this folder run `. .ci/common.sh`.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1
export PIP_COMPILE=0 # pip needn't compile modules, because Python compiles them on import
unset PYTHONDONTWRITEBYTECODE # later processes reuse the compiled modules
export PIP_CONSTRAINT=$PWD/.ci/constraints.txt
strict="-Wall -Wextra -Werror"
# By default, git refuses a checkout that belongs to another user.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
seed=$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1))) # each commit tests different inputs

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'echo "FAILED: line $LINENO of $0: $BASH_COMMAND" >&2' ERR

# The module is compiled several times, often with the same flags. .ci/run keeps ccache's objects for
# all parts of a run, but not for the next run.
if [ -d /usr/lib/ccache ]; then
    export PATH=/usr/lib/ccache:$PATH CCACHE_NOHASHDIR=1 CCACHE_DIR=${CCACHE_DIR:-$scratch/ccache}
fi

# Creates and activates a virtual environment; pip installs the arguments.
environment() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        { echo "CPython 3.10 or later is needed"; exit 1; }
    python3 -m venv "$scratch/venv"
    # shellcheck disable=SC1091
    . "$scratch/venv/bin/activate"
    [ $# = 0 ] || CC=gcc CFLAGS=$strict pip install "$@"
}

# Copies the checkout without build products, and makes the copy the current folder.
enter_copy() {
    mkdir "$scratch/checkout"
    if [ -e .git ]; then
        git ls-files -z | tar --null -cf - -T - | tar -xf - -C "$scratch/checkout"
    else # an unpacked source distribution
        tar -cf - --exclude=./build --exclude='*.so' --exclude='*.egg-info' . |
            tar -xf - -C "$scratch/checkout"
    fi
    cd "$scratch/checkout"
}

# Enters a copy of the checkout with what the linters, `pytest --full` and the page's tests need,
# installed in place. The parts of a run share it.
enter_full() {
    local own=$scratch
    scratch=${CI_SHARED:-$own}
    if [ ! -e "$scratch/full" ]; then
        enter_copy
        environment -e ".[docs,lint,test-full,web]"
        pip install --no-deps xgrammar==0.2.8 apache-tvm-ffi==0.1.15.post2 # without torch and transformers
        touch "$scratch/full"
    fi
    cd "$scratch/checkout"
    # shellcheck disable=SC1091
    . "$scratch/venv/bin/activate"
    scratch=$own
}

have_sanitizers() { # $1: the compiler, $2: the sanitizers
    echo 'int main(void) { return 0; }' >"$scratch/probe.c"
    "$1" "-fsanitize=${2:-address,undefined}" "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null &&
        "$scratch/probe" 2>/dev/null
}
