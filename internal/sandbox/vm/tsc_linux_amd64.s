#include "textflag.h"

// func ticksNow() uint64
TEXT ·ticksNow(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, ret+0(FP)
	RET
