# SPDX-License-Identifier: GPL-2.0
#
# WebSearch: flow sizes of a production cluster that serves web search.
#
# Measured in M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010 (figure 4).
# The points are those that later work commonly uses for that figure, for one the HPCC
# paper (Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019).
#
# Mean 1,711,250 bytes with straight lines between the points.
#
# bytes	fraction of flows that are no larger
0		0
10000		0.15
20000		0.20
30000		0.30
50000		0.40
80000		0.53
200000		0.60
1000000		0.70
2000000		0.80
5000000		0.90
10000000	0.97
30000000	1
