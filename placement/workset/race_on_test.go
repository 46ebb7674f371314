//go:build race

package workset_test

const raceDetector = true

// fleetSize is how many members TestFleet has.
const fleetSize = 40

// joinedSize is how many members TestJoined has, of which half are chosen.
const joinedSize = 10
