# The tag of the exception by which longjmp unwinds; zig's libc declares it and defines it nowhere.
	.tagtype __c_longjmp i32
	.globl __c_longjmp
__c_longjmp:
