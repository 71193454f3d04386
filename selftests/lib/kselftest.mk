# SPDX-License-Identifier: GPL-2.0
# What the folders of tests share. KSFT is where the kernel's lib.mk is: the lab's kernel source
# by default when this is the project's own tree.

CFLAGS += -O2 -g -Wall -Wextra -D_GNU_SOURCE= -D__SANE_USERSPACE_TYPES__ $(KHDR_INCLUDES)
CFLAGS += -ffile-prefix-map=$(abspath $(CURDIR)/../..)=.

TEST_FILES := settings $(wildcard *.py)
TEST_INCLUDES := $(wildcard ../lib/*.sh ../lib/*.py ../lib/cdf/*)

ifneq ($(wildcard ../../lib.mk),)
KSFT := ../..
else
KSFT ?= $(shell ../../scripts/lab kdir)/../source/tools/testing/selftests
endif

# The programs alone need no kernel tree.
ifeq ($(filter tools clean list,$(MAKECMDGOALS)),)
include $(KSFT)/lib.mk
else
OUTPUT ?= $(CURDIR)
endif

.PHONY: tools list
list:
	@printf '%s\n' $(TEST_PROGS:%=$(notdir $(CURDIR))/%)

tools: $(addprefix $(OUTPUT)/,$(TEST_GEN_FILES))

ifneq ($(filter clean,$(MAKECMDGOALS)),)
clean:
	rm -f $(addprefix $(OUTPUT)/,$(TEST_GEN_FILES))
endif
