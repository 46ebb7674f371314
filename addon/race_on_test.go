//go:build race

package addon_test

// fleetSize is how many members TestFleet has.
const fleetSize = 40
