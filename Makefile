# SPDX-License-Identifier: GPL-2.0
# The commands for people; "make help" lists them. The work is done in Kbuild,
# scripts/, bench/ and devel/.

KDIR ?= /lib/modules/$(shell uname -r)/build
DESTDIR ?=
PREFIX ?= /usr/local

.PHONY: help modules install uninstall dkms-install dkms-remove tools demo demo-roce test bench bench-check validate lint \
	ack-cost validate-clock matrix coverage mutate deb intree clean

help:
	@echo 'in the lab (no root needed, no kernel headers):'
	@echo '  make demo      compare congestion controls, data centre and Internet: out/demo/index.html'
	@echo '  make demo-roce a RoCEv2 flow beside congestion, without and with roce_rcm'
	@echo '  make test      unit tests, fuzzers, kselftests in the lab, conformance check'
	@echo '  make bench     run all comparisons, into out/bench (bench/results has a page of questions)'
	@echo '  make bench-check   repeat a run of each comparison, and compare with bench/digits.csv'
	@echo '  make validate  the lab beside queueing theory, loss laws, token buckets: docs/validation.md'
	@echo '  make lint      checkpatch, sparse, shellcheck, man pages'
	@echo 'on your kernel:'
	@echo '  make modules [KDIR=...]              build against kernel headers (6.1 to 7.3)'
	@echo '  sudo make install [KDIR=...] [DESTDIR=...] [PREFIX=...]   and uninstall'
	@echo '  sudo make dkms-install               rebuilt for every new kernel; and dkms-remove'
	@echo 'before a release:'
	@echo '  sudo make matrix [KERNELS=6.12]      Debian'\''s kernels 6.1, 6.12, 7 in QEMU'
	@echo '  sudo make validate-clock   the lab beside Debian'\''s kernels, whose clock QEMU keeps: docs/validation.md'
	@echo '  sudo make ack-cost   instructions per ACK on Debian'\''s kernels, in QEMU'
	@echo '  make coverage  which lines of the modules the tests run: gcovr'\''s report'
	@echo '  make mutate    puts small faults into the lines that you changed: the tests have to see them'
	@echo '  make intree KSRC=DIR   patches for a kernel tree in out/intree'
	@echo '  make deb       Debian packages in out/deb, checked by lintian'
	@echo 'make clean removes what was built here; scripts/lab clean the lab'\''s cache'

modules:
	@KDIR=$(KDIR) scripts/packages modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

# missing packages are installed or named before anything is compiled
install:
	@KDIR=$(KDIR) scripts/packages install
	$(MAKE) modules tools
	KDIR=$(KDIR) MAKE="$(MAKE)" scripts/install.sh modules "$(DESTDIR)" "$(PREFIX)"
	scripts/install.sh install "$(DESTDIR)" "$(PREFIX)"

uninstall:
	@scripts/packages uninstall
	scripts/install.sh uninstall "$(DESTDIR)" "$(PREFIX)"

dkms-install:
	scripts/dkms install

dkms-remove:
	scripts/dkms remove

tools:
	@scripts/packages tools
	$(MAKE) -s -C lab/tools

demo:
	bench/run --demo $(SEED:%=--seed %)

demo-roce:
	bench/run --fresh roce-victim

test:
	devel/test

bench:
	bench/run --all

bench-check:
	scripts/packages bench && bench/check

validate:
	bench/run --seeds 5 validate

lint:
	devel/lint

ack-cost:
	devel/ack-cost

validate-clock:
	devel/validate-clock --seeds 3 6.1 6.12 7

matrix:
	devel/matrix $(KERNELS)

coverage:
	devel/coverage

mutate:
	devel/mutate --change

intree:
	devel/intree --build --test $(KSRC)

deb:
	devel/deb

clean:
	$(MAKE) -C selftests clean
	rm -rf out
	find . -name .git -prune -o \
		\( -name __pycache__ -o -name .mypy_cache -o -name .hypothesis -o -name .tmp_versions \) -prune -exec rm -rf {} + -o \
		-type f \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' -o -name '*.order' \
		-o -name '*.symvers' -o -name '*.pyc' -o -name '.checkpatch-*' \) -exec rm -f {} +
