// Package simulation tests a whole fleet in one process and in virtual time: a complete hub, complete agents, users who
// act at random, and faults. All decisions of users and faults come from one seed.
//
// The package has tests only. TestSimulation runs on request: with MUSTER_SIMULATION=1h as many seeds as an hour
// allows, and with -seed N -seeds 1 one seed. Function simulate lists the oracles, functions act and strike what users
// do and what goes wrong. The hub of every third seed has two replicas with leader election, and every fourth seed has
// ClusterPlacements and ClusterWorkSets.
//
// A seed determines what users do and when, which disasters happen, and which request of a kind is lost or slow. It
// does not determine the order of goroutines that run at one instant, nor keys and certificates, so two runs of one
// seed can differ in requests.
package simulation
