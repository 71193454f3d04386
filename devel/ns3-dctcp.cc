// SPDX-License-Identifier: GPL-2.0
/*
 * ns3-dctcp - the transfer that devel/speed times in the lab, as a model in ns-3:
 *
 *	host ---- switch ==== bottleneck (RED step, ECN) ==== receiver
 *
 * One DCTCP flow, packet by packet: 1448 bytes of payload and 52 of headers, as
 * on a 1500 byte Ethernet with TCP timestamps. ns-3's point-to-point header has
 * 2 bytes where Ethernet's has 14; the bottleneck's rate makes up for it, so that
 * a full-size packet takes the same time in both.
 *
 * Where ns-3 leaves a choice, the faster one is used: no tracing, no logging, no IPv6,
 * no checksums, no queue discipline except the bottleneck's, and the scheduler and the
 * size of writes that were fastest in a test.
 *
 * Prints one line of JSON. Options: --bytes, --rate (bit/s), --rtt (us), --k
 * (packets), --scheduler, --write; --PrintHelp.
 */
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include "ns3-common.hh"

using namespace ns3;

namespace
{

uint64_t
sent(const Ptr<NetDevice>& device)
{
	return DynamicCast<PointToPointNetDevice>(device)->GetQueue()->GetTotalReceivedPackets();
}

} // namespace

int
main(int argc, char** argv)
{
	uint64_t bytes = 400000000;
	uint64_t rate = 10000000000;
	double rtt = 100;
	uint32_t k = 65;
	std::string scheduler = "ns3::MapScheduler";
	uint32_t write = PAYLOAD;

	CommandLine cmd(__FILE__);
	cmd.AddValue("bytes", "to transfer", bytes);
	cmd.AddValue("rate", "of the bottleneck, bit/s", rate);
	cmd.AddValue("rtt", "base RTT, us", rtt);
	cmd.AddValue("k", "marking threshold, packets", k);
	cmd.AddValue("scheduler", "ns-3's event scheduler", scheduler);
	cmd.AddValue("write", "bytes that the sender writes at once", write);
	cmd.Parse(argc, argv);

	useDctcp(scheduler, MilliSeconds(200));

	NodeContainer host(1);
	NodeContainer middle(1);
	NodeContainer receiver(1);
	NodeContainer all(host, middle, receiver);

	// The link to the switch adds only the base RTT, like a veth pair.
	PointToPointHelper near;
	near.SetDeviceAttribute("DataRate", StringValue("1000Gbps"));
	near.SetChannelAttribute("Delay", TimeValue(NanoSeconds(static_cast<uint64_t>(rtt * 500))));
	near.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("100000p"));
	NetDeviceContainer nearDevices = near.Install(host.Get(0), middle.Get(0));

	// The whole queue is in the queue discipline: the device holds one packet.
	PointToPointHelper far;
	far.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate / ETHERNET_FRAME * PPP_FRAME)));
	far.SetChannelAttribute("Delay", TimeValue(NanoSeconds(0)));
	far.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1p"));
	NetDeviceContainer farDevices = far.Install(middle.Get(0), receiver.Get(0));
	// Only ACKs leave the receiver, without a queue.
	DynamicCast<PointToPointNetDevice>(farDevices.Get(1))->GetQueue()->SetMaxSize(QueueSize("100000p"));

	InternetStackHelper stack;
	stack.SetIpv6StackInstall(false);
	stack.Install(all);

	TrafficControlHelper red;
	red.SetRootQueueDisc("ns3::RedQueueDisc",
			     "MinTh", DoubleValue(k), "MaxTh", DoubleValue(k),
			     "QW", DoubleValue(1), "UseEcn", BooleanValue(true),
			     "UseHardDrop", BooleanValue(false), "Gentle", BooleanValue(false),
			     "MaxSize", StringValue("1000p"), "MeanPktSize", UintegerValue(1500),
			     "LinkBandwidth", DataRateValue(DataRate(rate)),
			     "LinkDelay", TimeValue(MicroSeconds(1)));
	Ptr<QueueDisc> queue = red.Install(farDevices.Get(0)).Get(0);

	Ipv4AddressHelper address;
	address.SetBase("10.0.1.0", "255.255.255.0");
	address.Assign(nearDevices);
	address.SetBase("10.0.0.0", "255.255.255.0");
	Ipv4InterfaceContainer farAddresses = address.Assign(farDevices);
	// Assign gives each device fq_codel, which the lab's links do not have.
	TrafficControlHelper none;
	none.Uninstall(nearDevices);
	none.Uninstall(farDevices.Get(1));
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	const uint16_t port = 5201;
	PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
	ApplicationContainer sinks = sink.Install(receiver);
	sinks.Start(Seconds(0));
	BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(farAddresses.GetAddress(1), port));
	source.SetAttribute("MaxBytes", UintegerValue(bytes));
	source.SetAttribute("SendSize", UintegerValue(write));
	source.Install(host).Start(Seconds(0));

	// Finds the time of the last byte by polling every 10 us, without a callback per packet.
	Ptr<PacketSink> server = DynamicCast<PacketSink>(sinks.Get(0));
	double end = 0;
	const Time step = MicroSeconds(10);
	std::function<void()> look = [&] {
		if (server->GetTotalRx() < bytes) {
			Simulator::Schedule(step, look);
			return;
		}
		end = Simulator::Now().GetSeconds();
		Simulator::Stop();
	};
	Simulator::Schedule(step, look);
	Simulator::Stop(Seconds(600));

	const double cpu = cpuSeconds();
	const auto start = std::chrono::steady_clock::now();
	Simulator::Run();
	const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
	const double used = cpuSeconds() - cpu;

	const QueueDisc::Stats stats = queue->GetStats();
	const uint64_t acks = sent(farDevices.Get(1));
	const uint64_t forwarded = sent(nearDevices.Get(0)) + sent(farDevices.Get(0)) +
				   sent(nearDevices.Get(1)) + acks;
	const bool ok = server->GetTotalRx() >= bytes;

	std::cout << "{\"status\":\"" << (ok ? "ok" : "failed: the transfer did not end") << '"'
		  << ",\"bytes\":" << server->GetTotalRx()
		  << ",\"packets\":" << stats.nTotalDequeuedPackets
		  << ",\"acks\":" << acks
		  << ",\"forwarded\":" << forwarded
		  << ",\"marks\":" << stats.nTotalMarkedPackets
		  << ",\"drops\":" << stats.nTotalDroppedPackets
		  << ",\"virtual_s\":" << end
		  << ",\"goodput_bps\":" << static_cast<uint64_t>(ok ? bytes * 8 / end : 0)
		  << ",\"events\":" << Simulator::GetEventCount()
		  << ",\"wall_s\":" << wall.count() << ",\"cpu_s\":" << used << "}\n";
	Simulator::Destroy();
	return ok ? 0 : 1;
}
