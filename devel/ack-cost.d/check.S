/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A machine without a kernel, in 32-bit mode, whose functions have known numbers of instructions:
 * devel/ack-cost compares the plugin's counts with these before it measures. QEMU boots it
 * (multiboot).
 */
	.set	MAGIC, 0x1badb002
	.text
	.long	MAGIC, 0, -MAGIC

	.globl	_start
_start:	mov	$stack, %esp
	lgdt	gdtr
	ljmp	$8, $1f
1:	mov	$16, %eax
	mov	%eax, %ds
	mov	%eax, %ss
	mov	$interrupt, %eax
	mov	%ax, gate
	shr	$16, %eax
	mov	%ax, gate + 6
	lidt	idtr
	call	mark
	call	five
	call	nested
	mov	$3, %ecx
	call	looped
	call	tail
	call	softened
	call	interrupted
	call	sending
	call	resending
	call	passing
	call	keeping
	call	apart
	call	mark
	out	%al, $0xf4
	hlt

mark:	ret
five:	nop			/* 5; called 7 times, twice by a counted function */
	nop
	nop
	nop
	ret
nested:	call	five		/* 8 */
	nop
	ret
looped:	dec	%ecx		/* 7: a loop to the first instruction is no call */
	jnz	looped
	ret
tail:	nop			/* 7 */
	jmp	five
soft:	nop			/* 2, not its caller's */
	ret
softened:
	nop			/* 3 */
	call	soft
	ret
sending:
	nop			/* 3 */
	call	sent
	ret
sent:	nop			/* 4, not its caller's; without five and soft */
	call	five
	call	soft
	ret
resending:
	call	resent		/* 2 */
	ret
resent:	call	sent		/* 6, with sent, without five and soft */
	ret
passing:
	nop			/* 3 */
	call	pass
	ret
pass:	call	soft		/* 3, not its caller's */
	nop
	ret
kept:	call	passing		/* 5, with pass, without passing and soft */
	ret
keeping:
	call	kept		/* 2 */
	ret
apart:	nop			/* 3 */
	call	soft_sends
	ret
soft_sends:
	call	sent		/* not its caller's, nor counted: apart does not send it */
	ret
interrupt:
	call	five		/* not part of what it interrupts */
	iret
interrupted:
	int	$0		/* 2 */
	ret

	.data
gdt:	.quad	0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdtr:	.word	23
	.long	gdt
gate:	.word	0, 8, 0x8e00, 0
idtr:	.word	7
	.long	gate
	.bss
	.skip	4096
stack:
