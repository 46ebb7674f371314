// Package simulation tests a whole fleet in one process and in virtual time: a complete hub, complete agents, users
// with random actions, and faults. One seed determines all decisions of users and faults.
//
// The package has tests only. TestSimulation runs on request. MUSTER_SIMULATION=1h runs as many seeds as an hour
// allows. The flags -seed N -seeds 1 run one seed. The function simulate lists the oracles. The functions act and
// strike list the actions of users and the faults. The hub of every third seed has two replicas with leader election,
// and every fourth seed has ClusterPlacements and ClusterWorkSets.
//
// A seed determines the actions of users and their times, the disasters, and which request of a kind is lost or slow.
// It does not determine the order of goroutines that run at one instant, nor keys and certificates, so two runs of one
// seed can differ in requests.
package simulation
