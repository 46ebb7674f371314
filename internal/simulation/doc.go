// Package simulation tests a whole fleet in one process and in virtual time: a complete hub, complete agents, users who act
// at random, and faults. All decisions of users and faults come from one seed.
//
// The package has tests only. See TestSimulation for the oracles, and docs/testing.md for the commands.
package simulation
