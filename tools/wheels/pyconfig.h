/* The macros of pyconfig.h that Python's headers need under Py_LIMITED_API, for all platforms for
 * which wheels are built. (The pyconfig.h of this machine's Python describes only this machine.)
 * The compiler provides the sizes. */
#ifndef GGTOK_PYCONFIG_H
#define GGTOK_PYCONFIG_H

#define SIZEOF_INT __SIZEOF_INT__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_UINTPTR_T __SIZEOF_POINTER__
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define SIZEOF__BOOL 1
#define SIZEOF_PID_T 4
#define SIZEOF_TIME_T 8

#define _GNU_SOURCE 1 /* as in Python's pyconfig.h: makes all declarations visible */
#define _DARWIN_C_SOURCE 1
#define HAVE_LONG_LONG 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_WCHAR_H 1
#define WITH_DOC_STRINGS 1
#define WITH_THREAD 1

#ifdef _WIN32
#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define HAVE_DECLSPEC_DLL /* imports data from python3.dll, and exports PyInit__ffi */
#define Py_ENABLE_SHARED 1
#else
#define HAVE_SSIZE_T 1
#define HAVE_SYS_TIME_H 1
#define HAVE_UNISTD_H 1
#define SIZEOF_PTHREAD_T __SIZEOF_POINTER__
#endif

#endif
