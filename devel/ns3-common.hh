/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ns3-common.hh - what the models in ns-3 share: packets as on a 1500 byte Ethernet with TCP time stamps, DCTCP, and the
 * processor time taken so far.
 */
#ifndef LOWQ_NS3_COMMON_H
#define LOWQ_NS3_COMMON_H

#include <cstdint>
#include <ctime>
#include <string>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"

// bytes; ns-3's point-to-point header has 2 bytes where Ethernet's has 14
const uint32_t PAYLOAD = 1448;
const uint32_t ETHERNET_FRAME = 1514;
const uint32_t PPP_FRAME = 1502;

// of this process
inline double
cpuSeconds()
{
	timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

inline void
useDctcp(const std::string& scheduler, ns3::Time minRto)
{
	using namespace ns3;

	GlobalValue::Bind("SchedulerType", StringValue(scheduler));
	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
	Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
	Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(minRto));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD));
	Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
	Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
}

#endif
