# The tag of the exception that longjmp throws. zig's libc declares it, but doesn't define it.
	.tagtype __c_longjmp i32
	.globl __c_longjmp
__c_longjmp:
